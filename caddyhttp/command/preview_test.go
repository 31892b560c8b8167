package command

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestPreviewCommand(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "Caddyfile")
	text := `{
	notify {
		from grafana {
			title "Global: {{.title}}"
			sign grafana {env.PREVIEW_NOT_SET}
		}
	}
}
:8080 {
	notify {
		key ops {
			url json://localhost/plain
			url gotify://localhost/secrettoken critical
			accept backup
		}
		from backup {
			title "{{.job}}"
			skip "{{.skip}}"
		}
	}
}
`
	writeFile(t, config, text)
	payload := func(name string) string { return "@../../gateway/source/programs/testdata/" + name + ".json" }
	for _, tt := range []struct {
		args  string
		stdin string
		want  string
	}{
		{
			"--from alertmanager " + payload("alertmanager/resolved"), "",
			"title     DiskFull\ntype      success\nformat    text\nincident  http://am.example.net " +
				"{}:{alertname=\"DiskFull\"}\ntag       critical\n\n  Resolved: 91% full on db1",
		},
		{"--from alertmanager --key ops --config " + config + " " + payload("alertmanager/group"), "", "to        gotify://localhost/xxxxx"},
		{"--from alertmanager --key ops --tag critical --json --config " + config + " " + payload("alertmanager/group"), "", `"destinations": [`},
		{"--from github --json", `{"zen":"Keep it simple."}`, `"title": "Webhook added",`},
		{"--from github --header X-GitHub-Event:star @-", `{"action":"created"}`, "\n  Star created\n"},
		{"--from grafana --config " + config + " " + payload("grafana/firing"), "", "title     Global: [FIRING:2, RESOLVED:1] DiskFull"},
		{"--from backup --config " + config, `{"job":"nightly"}`, "\n  nightly\n"},
		{"--from backup --config " + config, `{"skip":true}`, "backup  nothing to send\n"},
		{"--from ntfy --path alerts --type text/plain", "hello", "\n  hello\n"},
	} {
		out, errs, code := command(t, tt.stdin, append([]string{"preview"}, strings.Fields(tt.args)...)...)
		if code != 0 || !strings.Contains(out, tt.want) || strings.Contains(out, "secrettoken") {
			t.Errorf("%s: %s\n%s\nwant %s", tt.args, errs, out, tt.want)
		}
	}
	for args, want := range map[string]string{
		"":                                              "--from is missing",
		"--from grafana payload.json":                   "the argument must be a file with the payload, such as @payload.json",
		"--from grafna @-":                              "there is no built-in source grafna",
		"--from grafana --tag x @-":                     "--tag has no effect without --key",
		"--from grafana @/nonexistent":                  "no such file",
		"--from grafana --header x @-":                  "write a name and a value",
		"--from nobody --config " + config:              "there is no built-in source nobody",
		"--from grafana --config - @-":                  "standard input cannot be both",
		"--from backup --config " + config:              "nothing that a message of backup has",
		"--from grafana --config /none/x @-":            "reading the configuration",
		"--from grafana " + payload("uptime_kuma/test"): "it looks like one of Uptime Kuma, whose address ends with /uptime_kuma",
	} {
		out, errs, code := command(t, "{}", append([]string{"preview"}, strings.Fields(args)...)...)
		if code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%s: %s\n%s\nwant %s", args, errs, out, want)
		}
	}
}
