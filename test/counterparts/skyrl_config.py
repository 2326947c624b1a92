"""Builds SkyRL's own configuration from each case on standard input ({name: {backend, config}}); prints {name: fault or null}."""

import json
import sys

from skyrl.backends.jax import JaxBackendConfig
from skyrl.train.config import SkyRLTrainConfig


def value_at(config, path):
    for name in path.split("."):
        config = config[name] if isinstance(config, dict) else getattr(config, name)
    return config


def fault(backend, config):
    try:
        if backend == "jax":
            JaxBackendConfig(**config)
            return None
        overrides = {**config, "trainer.strategy": backend, "trainer.policy.model.path": "Qwen/Qwen3-4B"}
        built = SkyRLTrainConfig.from_cli_overrides(overrides)
        wrong = {path: value_at(built, path) for path, value in config.items() if value_at(built, path) != value}
        return f"taken as {wrong}" if wrong else None
    except Exception as error:
        return f"{type(error).__name__}: {error}"


print(json.dumps({name: fault(**case) for name, case in json.load(sys.stdin).items()}))
