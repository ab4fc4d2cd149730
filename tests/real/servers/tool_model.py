"""Serves a model as the local server does, with a template that knows tools: weights, template."""

import sys
import threading
from pathlib import Path

import xllamacpp


weights, template = sys.argv[1:]
params = xllamacpp.CommonParams()
params.model.path = weights
params.model_alias = {"smollm2"}
params.chat_template = Path(template).read_text()
params.hostnames = ["127.0.0.1"]
params.port = 0
params.offline = True
params.ui = False
params.n_ctx = 6144
params.n_parallel = 6
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.use_jinja = True
params.endpoint_slots = True
params.verbosity = 1
server = xllamacpp.Server(params)
sys.stdout.write(f"listening on {server.listening_address}\n")
sys.stdout.flush()
threading.Event().wait()
