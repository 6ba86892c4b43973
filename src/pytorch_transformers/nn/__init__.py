"""Building blocks of the models, each written once. Knows no family, no configuration and no file.

The letters used in shape comments of the whole package:

    B  batch                     T  tokens of a (padded) sequence      N  real tokens of a batch, padding left out
    H  hidden size               A  attention heads                    D  size of one head, H = A * D
    F  inner feed-forward size   V  vocabulary                         C  classes or choices
    L  layers
"""
