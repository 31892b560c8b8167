// Sends messages with Slack's SDK for Node and with discord.js, whose folder is the first
// argument, to the gateway at the second one. It prints a line for each answer.
const { createRequire } = require("node:module");
const [folder, gateway] = process.argv.slice(2);
const load = createRequire(folder + "/");
const { WebClient } = load("@slack/web-api");
const { WebhookClient } = load("discord.js");

async function say(name, f) {
	try {
		const answer = await f();
		console.log(name + ": " + answer);
	} catch (e) {
		console.log(name + ": " + (e.data?.error ?? e.message));
	}
}

async function main() {
	const slack = (token, key = "ops") => new WebClient(token, { slackApiUrl: `http://${gateway}/notify/${key}/slack/api/`, logLevel: "error" });
	const post = { channel: "#ops", text: "91% full" };
	await say("sent", async () => (await slack("secret").chat.postMessage(post)).ok);
	await say("wrong token", () => slack("wrong").chat.postMessage(post));
	await say("unknown method", () => slack("secret").apiCall("users.list"));
	await say("no text", () => slack("secret").chat.postMessage({ channel: "#ops" }));
	await say("refused", () => slack("secret", "gone").chat.postMessage(post));
	await say("file", async () => (await slack("secret").files.uploadV2({ channel_id: "C024BE7LR", filename: "graph.txt", file: Buffer.from("the\0file"), initial_comment: "see" })).ok);

	const discord = new WebhookClient({ id: "1", token: "secret" }, { rest: { api: `http://${gateway}/notify/ops/discord/api`, version: "10", retries: 0 } });
	const files = Array.from({ length: 10 }, (_, i) => ({ attachment: Buffer.from("x"), name: `g${i}.txt` }));
	await say("discord", async () => (await discord.send({ content: "look", files })).content);
	discord.destroy?.();
}

main().then(() => process.exit(0));
