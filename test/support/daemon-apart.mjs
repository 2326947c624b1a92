/**
 * A process between a test and the machine's Docker daemon: `node daemon-apart.mjs SOCKET WORD`, until its standard input ends. Through
 * SOCKET the daemon looks as if nobody else had containers of rlcli there, and nobody else sees those that are made through it: their labels
 * begin with WORD on the daemon, instead of with `dev.rlcli.`. So what a test leaves behind on purpose is not tidied away by
 * another that runs at the same time. A process of its own, since tests wait for commands without giving their thread away.
 */
import { createServer, request } from "node:http";

const [socket, word] = process.argv.slice(2);
const OURS = "dev.rlcli.";
const hide = (text) => text.replaceAll(OURS, word);
const show = (text) => text.replaceAll(word, OURS);

/** Creations and lists; streams and all about images pass as they are. */
const isAboutContainers = ({ url }) => /\/containers\/(create|json|[^/?]+\/json)(\?|$)/.test(url);

async function textOf(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return Buffer.concat(parts).toString();
}

function ask({ method, url, headers }, onAnswer, onError) {
  const asked = request({ socketPath: "/var/run/docker.sock", method, path: url, headers }, onAnswer);
  return asked.on("error", onError);
}

async function translate(asked, answer) {
  const body = hide(await textOf(asked));
  const headers = { ...asked.headers, "content-length": Buffer.byteLength(body) };
  delete headers["transfer-encoding"];
  const onAnswer = async (found) => {
    const text = show(await textOf(found));
    const { "transfer-encoding": _, "content-length": __, ...rest } = found.headers;
    answer.writeHead(found.statusCode, rest).end(text);
  };
  ask({ method: asked.method, url: hide(asked.url), headers }, onAnswer, () => answer.destroy()).end(body);
}

function pass(asked, answer) {
  const onAnswer = (found) => {
    answer.writeHead(found.statusCode, found.headers);
    // Streams begin before there is anything in them.
    answer.flushHeaders();
    found.on("error", () => answer.destroy()).pipe(answer);
  };
  const real = ask(asked, onAnswer, () => answer.destroy());
  answer.on("close", () => real.destroy());
  asked.pipe(real);
}

const server = createServer((asked, answer) => (isAboutContainers(asked) ? translate : pass)(asked, answer));
// As the daemon itself: whoever waits for a command meanwhile finds the connection as it was.
server.keepAliveTimeout = 0;
server.requestTimeout = 0;
server.listen(socket, () => process.stdout.write("ready\n"));
process.stdin.resume().on("end", () => process.exit());
