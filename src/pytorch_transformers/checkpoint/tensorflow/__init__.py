"""TensorFlow's V2 checkpoints ("tensor bundles"), read and written without TensorFlow.

A checkpoint PREFIX is one file PREFIX.index and data files PREFIX.data-0000i-of-0000n ("shards"). The data files hold
the values of the variables, little-endian and in row order, one variable after the other. The index is a sorted table
from the names of the variables to messages that say type, shape, data file, offset, size and checksum.

The facts of the format come from these sources; no code of theirs is used.

* bundles: tensorflow/core/protobuf/tensor_bundle.proto, core/util/tensor_bundle/, core/util/saved_tensor_slice_util.cc
* the table: doc/table_format.md of LevelDB (https://github.com/google/leveldb), which tensorflow/core/lib/io/ follows

| file | answers |
|---|---|
| `find.py` | which checkpoint is meant |
| `table.py`, `block.py` | the index as a table of bytes |
| `messages.py` | the messages in it, and the numbers of the types |
| `slices.py` | the parts of a partitioned variable |
| `entries.py` | from the table to variables, every claim checked |
| `bundle.py` | the values |
| `write.py` | the way back |
"""
