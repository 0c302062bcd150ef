// Serves one emulated GitHub until its standard input ends: node serve.mjs MODULE SEED.json
import { readFileSync } from "node:fs";
import { Server, createServer } from "node:net";
import { pathToFileURL } from "node:url";

const [module, seed] = process.argv.slice(2);

// The emulator takes the number of a port, which it puts into the addresses that it signs. So that nobody else
// has that port by then, it is held from when the kernel gives it, and handed to whoever listens first.
const holder = createServer();
await new Promise((held, failed) => holder.once("error", failed).listen(0, "127.0.0.1", held));
const { port } = holder.address();
const { listen } = Server.prototype;
Server.prototype.listen = function (given, ...rest) {
  Server.prototype.listen = listen;
  if (given !== port) throw new Error(`the emulator listens at ${given}, not at ${port}`);
  return listen.call(this, holder, ...rest.filter((one) => typeof one === "function"));
};

const { createEmulator } = await import(pathToFileURL(module));
const emulator = await createEmulator({
  service: "github",
  port,
  hostname: "127.0.0.1",
  baseUrl: `http://127.0.0.1:${port}`, // what it signs its own addresses with: must be the client's
  seed: JSON.parse(readFileSync(seed, "utf8")),
});
console.log(emulator.url);
process.stdin.on("end", () => emulator.close().then(() => process.exit(0))).resume();
