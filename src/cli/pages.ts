/** Topics of `rlcli explain` and `rlcli help` that no block, field, loss, metric or code stands for. */

export interface Page {
  /** One word; with spaces for its hyphens it is found too. */
  readonly name: string;
  readonly about: string;
  readonly rows: readonly PageRow[];
}

export interface PageRow {
  readonly term: string;
  readonly about: string;
}

const row = (term: string, about: string): PageRow => ({ term, about });

const ADDRESSES: Page = {
  name: "addresses",
  about: "How commands and fields name things.",
  rows: [
    row("run.agent", "A block of the spec, by kind and name: for --target, --replace, show, state show."),
    row("agent", "A run, where a run is asked for; as weights, its final checkpoint."),
    row("agent@40", "Its checkpoint after step 40, if that is kept: `rlcli checkpoint list`."),
    row("agent@best", "The one with the best eval or held-out loss."),
    row("agent@last", "The newest one, also of a run that has not ended; only on the command line."),
    row("deployment.production", "Where a deployment points now."),
    row("tinker://RUN/weights/NAME", "A training checkpoint by its path on a server; loads with its optimizer."),
    row("tinker://RUN/sampler_weights/NAME", "Weights for sampling by their path on a server."),
    row("builtin:tiny", "The model that rlcli brings along."),
    row("./models/qwen", "A model folder; `owner/name` is a model of the Hugging Face hub."),
    row("hf://owner/name/config/split", "A dataset of the hub, pinned in rlcli.lock; `@revision` after the name."),
    row("https://host/path", "A file of the web, pinned in rlcli.lock by its length and ETag."),
    row(
      "s3://bucket/key",
      "An object, those that a `*` matches, or with `/` at the end all logs below; pinned in rlcli.lock.",
    ),
    row("terminal-bench@2.0", "A dataset of Harbor tasks, by name and version."),
  ],
};

/** Every variable that the program reads; a test holds the sources against it. */
const VARIABLES: Page = {
  name: "environment-variables",
  about: "What the environment can say. What a flag or a field says comes first.",
  rows: [
    row("RLCLI_VAR_NAME", "Value of the variable NAME that a spec declares; after --var and --var-file."),
    row("TINKER_API_KEY", "Key of the server that --base-url or an external server's `url` names."),
    row("RLCLI_OPENAI_KEY", "What clients of `rlcli serve openai` must send."),
    row("RLCLI_CACHE", "Cache of all projects (default: rlcli in XDG_CACHE_HOME, ~/.cache)."),
    row("RLCLI_DATA", "Where Python environments are kept (default: rlcli in XDG_DATA_HOME, ~/.local/share)."),
    row("XDG_CACHE_HOME", "The folder of caches."),
    row("XDG_DATA_HOME", "The folder of installed things."),
    row("XDG_STATE_HOME", "Where it is noted which servers run (default: ~/.local/state)."),
    row("HF_TOKEN", "Token for the Hugging Face hub: private datasets, and uploads."),
    row("HF_ENDPOINT", "The hub, or a mirror of it (default: https://huggingface.co)."),
    row("HF_HUB_OFFLINE", "1: the hub is not asked; what is in the cache is used."),
    row("AWS_ACCESS_KEY_ID", "With AWS_SECRET_ACCESS_KEY: who reads s3:// (default: nobody, for what is open)."),
    row("AWS_SESSION_TOKEN", "Of a temporary key."),
    row("AWS_REGION", "Region of the buckets (or AWS_DEFAULT_REGION; default: us-east-1, and what a bucket says)."),
    row("AWS_ENDPOINT_URL", "Another S3 than Amazon's, such as MinIO (AWS_ENDPOINT_URL_S3 comes first)."),
    row("DOCKER_HOST", "The Docker daemon for sandboxes (default: the local socket)."),
    row("DOCKER_TLS_VERIFY", "Set: a tcp:// daemon is spoken to over TLS."),
    row("DOCKER_CERT_PATH", "Folder with ca.pem, cert.pem and key.pem for that."),
    row("RLCLI_SSH", "Command in place of ssh, for servers and daemons on other machines."),
    row("RLCLI_UV", "The uv that makes Python environments (default: on PATH, or where its installer puts it)."),
    row("RLCLI_SKYRL_PACKAGE", "What uv installs as SkyRL."),
    row("RLCLI_SKYRL_PYTHON", "Version of Python for SkyRL."),
    row("RLCLI_SKYRL_INDEX", "Package index for SkyRL."),
    row("RLCLI_SKYRL_ARGUMENTS", "Further arguments of `uv pip install`, separated by spaces."),
    row("CI", "Set: --locked is the default, and progress is told in plain lines."),
    row("NO_COLOR", "Set: no colour. FORCE_COLOR: colour also in a pipe."),
    row("TERM", "dumb: plain lines without colour."),
    row("LC_ALL", "LC_ALL, LC_CTYPE or LANG without UTF-8: bars and curves in ASCII."),
  ],
};

/** A test holds it against `EXIT`. */
const EXIT_CODES: Page = {
  name: "exit-codes",
  about: "How commands end, for scripts.",
  rows: [
    row("0", "Done. `plan --detailed-exitcode`: done, and nothing to change."),
    row(
      "1",
      "Failed, with a diagnostic that says why: a faulty spec, a wrong option, an apply in which something failed or was interrupted, an `eval` whose threshold was not met.",
    ),
    row("2", "`plan --detailed-exitcode` only: done, and there are changes."),
    row("3", "`apply --smoke` only: nothing failed, but not everything could be tried here."),
    row(
      "70",
      "A bug in rlcli. The report on stderr names version, command and place; it repeats no values of options.",
    ),
    row("130", "Stopped at once by a second Ctrl-C or SIGTERM."),
  ],
};

export const PAGES: readonly Page[] = [ADDRESSES, VARIABLES, EXIT_CODES];

export const pageNamed = (text: string): Page | undefined =>
  PAGES.find(({ name }) => name === text.toLowerCase().replaceAll(" ", "-"));
