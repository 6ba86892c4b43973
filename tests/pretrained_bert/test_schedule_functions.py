"""The schedules as the scripts of the releases before 0.6 import them: functions of the share that is done."""

import pytest

from pytorch_pretrained_bert import optimization, optimization_openai
from pytorch_pretrained_bert.optimization import warmup_constant, warmup_cosine, warmup_linear


def test_functions_are_the_factors_of_the_classes() -> None:
    assert [warmup_linear(x, 0.2) for x in (0.0, 0.1, 0.6, 1.0)] == pytest.approx([0, 0.5, 0.5, 0])
    assert [warmup_constant(x, 0.2) for x in (0.0, 0.1, 0.6)] == pytest.approx([0, 0.5, 1])
    assert [warmup_cosine(x, 0.2) for x in (0.1, 0.2, 0.6, 1.0)] == pytest.approx([0.5, 1, 0.5, 0])
    assert warmup_linear(0.001) == pytest.approx(0.5)


def test_both_modules_have_the_same() -> None:
    assert optimization_openai.SCHEDULES is optimization.SCHEDULES
    assert set(optimization.__all__) ^ set(optimization_openai.__all__) == {"BertAdam", "OpenAIAdam"}
    assert issubclass(optimization.ConstantLR, optimization._LRSchedule)
