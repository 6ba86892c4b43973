"""Tests of `pytorch_pretrained_bert`, the API of 0.6.2."""
