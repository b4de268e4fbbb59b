// SPDX-License-Identifier: Apache-2.0
// Keeps lines that are posted to it; they are its state. What is between the lines of hyphens is all that an app in Node
// needs: Varlink over the app's own socket, where each message is JSON with a NUL behind it.
"use strict";
const fs = require("node:fs");
const http = require("node:http");

// ----
const net = require("node:net");

function connect(method, parameters, more, onReply, onEnd) {
    const socket = net.connect(process.env.TORPOR_APP_SOCKET);
    let text = "";
    socket.setEncoding("utf8").on("error", () => {}).on("close", onEnd).on("data", (data) => {
        const replies = (text + data).split("\0");
        text = replies.pop();
        for (const reply of replies) onReply(JSON.parse(reply), socket);
    });
    socket.write(JSON.stringify({ method: `io.torpor.App.${method}`, parameters, more }) + "\0");
}

// Names the wrong parameter, if that is what is wrong.
const explain = (error, parameters) => parameters?.message ?? [error, parameters?.parameter].filter(Boolean).join(" ");

// Asks once, and again if torpord is replaced before it has replied.
const call = (method, parameters = {}) => new Promise((resolve, reject) => {
    let isDone = false;
    const onReply = ({ error, parameters }, socket) => {
        isDone = true;
        socket.destroy();
        error ? reject(new Error(`${method}: ${explain(error, parameters)}`)) : resolve(parameters);
    };
    const ask = () => connect(method, parameters, false, onReply, () => isDone || setTimeout(ask, 100));
    ask();
});

// Has the methods of an object called with the parameters of their messages, one after the other. A message without a
// method, or whose method returns "unhandled", may be told to another app; the events of the app show it.
function supervise(delegate, incarnation, last = 0) {
    const onReply = async ({ error, parameters }) => {
        if (error) return console.error(error, parameters);
        const { message } = parameters;
        if (!message) incarnation = parameters.incarnation; // The first reply says how the app is.
        if (!message || message.id <= last) return;
        last = message.id;
        const answer = { id: message.id, result: "unhandled" };
        try {
            const handles = message.name in delegate && await delegate[message.name](message.parameters) !== "unhandled";
            if (handles) answer.result = "done";
        } catch (error) {
            console.error(error);
            Object.assign(answer, { result: "failed", text: String(error) });
        }
        call("Answer", answer).catch(console.error);
    };
    // A torpord that takes over is told what was heard, and tells no message again.
    const known = incarnation ? { incarnation, after: last } : {};
    connect("Attach", known, true, onReply, () => setTimeout(supervise, 100, delegate, incarnation, last));
}
// ----

let notes = [];
const server = http.createServer(async (request, response) => {
    if (request.method === "POST") {
        let note = "";
        for await (const part of request) note += part;
        notes.push(note);
    }
    response.end(notes.map((note) => note + "\n").join(""));
});
const listen = () => new Promise((resolve) => server.listen(Number(process.argv[2] ?? 8080), "127.0.0.1", resolve));

const save = () => call("SaveState", { data: Buffer.from(JSON.stringify(notes)).toString("base64") });

const delegate = {
    restoreState({ path }) {
        notes = JSON.parse(fs.readFileSync(path));
    },
    // Clients are let in here, when the notes are back.
    didFinishLaunching: listen,
    didEnterBackground: save,
    // In the foreground, a shutdown of the machine comes without didEnterBackground.
    willTerminate: save,
};
process.env.TORPOR_APP_SOCKET ? supervise(delegate) : listen();
