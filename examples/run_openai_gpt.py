r"""Which of two sentences ends a story: the published script on RocStories by its flags, with OpenAI GPT.

    python examples/run_openai_gpt.py --model_name openai-gpt --do_train --do_eval \
        --train_dataset cloze_test_val__spring2016.csv --eval_dataset cloze_test_test__spring2016.csv \
        --train_batch_size 16 --output_dir cloze_model

As there, the loss is that of the choice and `--lm_coef` times that of the language model, and three new tokens stand
before the story, between story and ending, and at the end. What is different: the saved folder has everything that
loads the model again, its tokenizer too; without `--eval_dataset`, `--n_valid` stories of `--train_dataset` are held
out for evaluation. `pytorch_transformers train cloze` is the same.
"""

import sys
from collections.abc import Sequence

from pytorch_transformers.cli.train.arguments import run_script
from pytorch_transformers.cli.train.cloze import COMMAND


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script on the arguments of a command line; the result is its exit status."""
    return run_script(COMMAND, "run_openai_gpt.py", argv)


if __name__ == "__main__":
    sys.exit(main())
