//! A provider of language models that behaves as the real ones do, for tests and trials: validation, prompt cache, signatures, streaming, latency, faults.
