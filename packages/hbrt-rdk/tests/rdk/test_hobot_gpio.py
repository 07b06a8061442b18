"""Hobot.GPIO: pins as variables."""

import pytest

from Hobot import GPIO


def test_pins_keep_levels_and_what_is_not_set_up_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Please set pin numbering mode"):
        GPIO.setup(37, GPIO.OUT)
    GPIO.setmode(GPIO.BOARD)
    GPIO.setup([37, 36], GPIO.OUT, initial=[GPIO.HIGH, GPIO.LOW])
    GPIO.setup(18, GPIO.IN, pull_up_down=GPIO.PUD_UP)
    GPIO.output((36, 37), (1, 0))
    assert [GPIO.input(one) for one in (36, 37, 18)] == [1, 0, 1]
    assert GPIO.wait_for_edge(18, GPIO.FALLING, timeout=1) is None
    pulse = GPIO.PWM(33, 48000)
    pulse.start(25)
    assert GPIO.gpio_function(33) == GPIO.HARD_PWM
    with pytest.raises(ValueError, match="Invalid duty cycle 101"):
        pulse.ChangeDutyCycle(101)
    with pytest.raises(ValueError, match="Channel 6 is invalid"):  # ground
        GPIO.setup(6, GPIO.IN)
    with pytest.raises(RuntimeError, match="Channel 18 was not set up as an output"):
        GPIO.output(18, 1)
    GPIO.cleanup()
    assert GPIO.getmode() is None
