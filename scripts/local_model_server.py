"""Serves a GGUF model on the loopback interface until SIGINT or SIGTERM; `scripts/local-model` starts it.

Standard output gets one line, the base URL, as soon as the model answers; standard error what went wrong. The rest of
what the library says goes to a log.
"""

import argparse
import os
import signal
import threading

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--window", type=int, required=True)
parser.add_argument("--threads", type=int, required=True)
parser.add_argument("--log", required=True)
arguments = parser.parse_args()

# The library writes to both streams.
announce = os.fdopen(os.dup(1), "w")
complain = os.fdopen(os.dup(2), "w")
log = os.open(arguments.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
os.dup2(log, 1)
os.dup2(log, 2)

import xllamacpp  # noqa: E402

parameters = xllamacpp.CommonParams()
parameters.model.path = arguments.model
parameters.model_alias = {"smollm2-135m"}
parameters.hostnames = ["127.0.0.1"]
parameters.port = arguments.port
# One slot: all requests share one cache, and each may take the whole window.
parameters.n_parallel = 1
parameters.n_ctx = arguments.window
parameters.cpuparams.n_threads = arguments.threads
parameters.cpuparams_batch.n_threads = arguments.threads
parameters.offline = True
parameters.ui = False
# `/props` tells the window.
parameters.endpoint_props = True

try:
    server = xllamacpp.Server(parameters)
except Exception as error:
    print(f"local-model: the server does not start: {error}", file=complain)
    with open(arguments.log, errors="replace") as lines:
        reasons = [line.split("E", 1)[1].strip() for line in lines if " E " in line[:24]]
    for reason in [*reasons[:1], f"All of its log is in {arguments.log}"]:
        print(f"  {reason}", file=complain, flush=True)
    os._exit(1)

ended = threading.Event()
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: ended.set())

print(server.listening_address, file=announce, flush=True)
# A wait without a limit would not be woken by signals everywhere.
while not ended.wait(0.5):
    pass
# Nothing is to be saved, and taking the model down in order takes seconds.
os._exit(0)
