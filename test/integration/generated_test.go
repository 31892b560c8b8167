package integration

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	oapiCodegen = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"

	// generatedModule is the module of the generated client, with what its code imports.
	generatedModule = `module generated

go 1.26

require github.com/oapi-codegen/runtime v1.9.0
`

	// generatedUse sends with the generated client, and reads the state of the message.
	generatedUse = `package main

import (
	"context"
	"fmt"
	"os"

	"generated/client"
)

func main() {
	c, err := client.NewClientWithResponses(os.Args[1])
	if err != nil {
		panic(err)
	}
	ctx, body, accept := context.Background(), "91% full", "application/json"
	sent, err := c.NotifyKeyWithResponse(ctx, "ops", &client.NotifyKeyParams{Accept: &accept}, client.Message{Body: &body})
	if err != nil || sent.JSON200 == nil {
		panic(fmt.Sprintf("%v %s", err, sent.Body))
	}
	fmt.Println(sent.JSON200.Results[0].Status)
	state, err := c.GetMessageWithResponse(ctx, *sent.JSON200.Id, &client.GetMessageParams{Accept: &accept})
	if err != nil || state.JSON200 == nil {
		panic(fmt.Sprintf("%v %s", err, state.Body))
	}
	fmt.Println(state.JSON200.State)
	missing, err := c.NotifyKeyWithResponse(ctx, "none", &client.NotifyKeyParams{Accept: &accept}, client.Message{Body: &body})
	if err != nil || missing.JSON404 == nil {
		panic(fmt.Sprintf("%v %s", err, missing.Body))
	}
	fmt.Println(missing.StatusCode())
}
`

	// generatedTypes uses the generated types: a field of the wrong type is an error.
	generatedTypes = `import type { components, operations, paths } from "./api.js";

export const message: components["schemas"]["Message"] = { title: "Disk", body: "91% full", tag: ["chat", ["ops", "eu"]], ask: null };
export const key: paths["/notify/{key}"]["post"]["parameters"]["path"] = { key: "ops" };

type Sent = operations["notifyKey"]["responses"][200]["content"]["application/json"];
export function failed(sent: Sent): string[] {
	return sent.results.filter((r) => r.status === "failed").map((r) => r.error ?? r.destination);
}

type State = operations["getMessage"]["responses"][200]["content"]["application/json"];
export const isDone = (m: State): boolean => m.state !== "queued";

// @ts-expect-error: a body is a text
export const wrong: components["schemas"]["Message"] = { body: 5 };
`
)

// writeDescription writes the description of a gateway's API into a file of a new folder. It
// returns the address of the gateway and the folder.
func writeDescription(t *testing.T) (address, folder string) {
	t.Helper()
	hook := newWebhook(t)
	port := freePort(t)
	startGateway(t, port, fmt.Sprintf(`{
	notify {
		queue
		key ops {
			url %s
		}
	}
}
http://127.0.0.1:%d {
	notify
}
`, hook.to("/hook"), port))
	address, folder = fmt.Sprintf("http://127.0.0.1:%d", port), t.TempDir()
	status, text := ask(t, request(t, http.MethodGet, address+"/notify/openapi.json", ""))
	if status != http.StatusOK {
		t.Fatalf("status %d: %s", status, text)
	}
	write(t, folder, "openapi.json", text)
	return address, folder
}

func write(t *testing.T, folder, name, text string) {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// runIn runs a program in a folder and returns what it prints.
func runIn(t *testing.T, folder, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = folder
	// Modules come from the network, whose servers these tests do not certify.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SSL_CERT_") })
	cmd.Env = append(cmd.Env, "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err, out, said.String())
	}
	return string(out), err
}

// TestGeneratedGo generates a client from the description of the API, compiles it and sends with it.
func TestGeneratedGo(t *testing.T) {
	tools := t.TempDir()
	t.Setenv("GOBIN", tools)
	if _, err := runIn(t, tools, "go", "install", oapiCodegen); err != nil {
		t.Skipf("oapi-codegen cannot be had: %v", err)
	}
	address, folder := writeDescription(t)
	write(t, folder, "go.mod", generatedModule)
	write(t, folder, "main.go", generatedUse)
	write(t, folder, "client/doc.go", "// Package client is generated.\npackage client\n")
	if _, err := runIn(t, folder, filepath.Join(tools, "oapi-codegen"), "-package", "client", "-generate", "types,client", "-o",
		"client/client.go", "openapi.json"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOFLAGS", "-mod=mod")
	if _, err := runIn(t, folder, "go", "mod", "download"); err != nil {
		t.Skipf("the modules of the client cannot be had: %v", err)
	}
	if _, err := runIn(t, folder, "go", "vet", "./..."); err != nil {
		t.Fatal(err)
	}
	out, err := runIn(t, folder, "go", "run", ".", address)
	if err != nil {
		t.Fatal(err)
	}
	if want := "delivered\ndelivered\n404\n"; out != want {
		t.Errorf("the client printed %q, want %q", out, want)
	}
}

// TestGeneratedTypeScript generates types from the description of the API, and checks them and the
// description with the programs in the folder that GENERATORS names.
func TestGeneratedTypeScript(t *testing.T) {
	programs := os.Getenv("GENERATORS")
	if programs == "" {
		t.Skip("GENERATORS names no folder with openapi-typescript, typescript and @redocly/cli")
	}
	_, folder := writeDescription(t)
	rules, err := os.ReadFile("../../.ci/redocly.yaml")
	if err != nil {
		t.Fatal(err)
	}
	write(t, folder, "redocly.yaml", string(rules))
	write(t, folder, "use.ts", generatedTypes)
	bin := func(name string) string { return filepath.Join(programs, "node_modules", ".bin", name) }
	for _, c := range [][]string{
		{bin("openapi-typescript"), "openapi.json", "-o", "api.d.ts"},
		{
			bin("tsc"), "--strict", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes", "--noEmit", "--module", "nodenext",
			"use.ts", "api.d.ts",
		},
	} {
		if _, err := runIn(t, folder, c[0], c[1:]...); err != nil {
			t.Fatal(err)
		}
	}
	report, err := runIn(t, folder, bin("redocly"), "lint", "--format=json", "openapi.json")
	if err != nil || !strings.Contains(report, `"warnings": 0`) { // they are no error for lint
		t.Errorf("%v: the linter says:\n%s", err, report)
	}
}
