"""The schedules as the scripts of the releases before 0.6.2 import them: functions of the share that is done."""

import pytest
from torch.optim.optimizer import required

from pytorch_pretrained_bert import optimization, optimization_openai
from pytorch_pretrained_bert.optimization import warmup_constant, warmup_cosine, warmup_linear


def test_functions_are_the_factors_of_the_classes() -> None:
    assert [warmup_constant(x, 0.2) for x in (0.0, 0.1, 0.6)] == pytest.approx([0, 0.5, 1])
    assert [warmup_cosine(x, 0.2) for x in (0.1, 0.2, 0.6, 1.0)] == pytest.approx([0.5, 1, 0.5, 0])


def test_the_straight_line_is_that_of_the_early_releases() -> None:
    """It drops at the end of the warm-up, and goes on below 0; that of the class does neither."""
    assert [warmup_linear(x, 0.2) for x in (0.0, 0.1, 0.5, 0.6, 1.0, 1.5)] == pytest.approx([0, 0.5, 0.5, 0.4, 0, -0.5])
    assert warmup_linear(0.5, 0.1) == 0.5
    assert warmup_linear(0.001) == pytest.approx(0.5)
    assert warmup_linear(0.25, -1) == warmup_linear(0.25, 0.0) == 0.75
    assert optimization.WarmupLinearSchedule(warmup=0.2, t_total=10).get_lr(6) == pytest.approx(0.5)


def test_both_modules_have_the_same() -> None:
    assert optimization_openai.SCHEDULES is optimization.SCHEDULES
    assert set(optimization.__all__) ^ set(optimization_openai.__all__) == {"BertAdam", "OpenAIAdam"}
    assert issubclass(optimization.ConstantLR, optimization._LRSchedule)
    assert optimization_openai.required is optimization.required is required
    assert optimization_openai.logger is optimization.logger


def test_the_logger_is_the_one_that_warns(caplog: pytest.LogCaptureFixture) -> None:
    schedule = optimization.WarmupLinearSchedule(warmup=0.2, t_total=10)
    schedule.get_lr(11)
    assert [record.name for record in caplog.records] == [optimization.logger.name]
