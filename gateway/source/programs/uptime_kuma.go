package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "uptime_kuma",
		Program: "Uptime Kuma",
		Doc:     "https://github.com/louislam/uptime-kuma/wiki/Notification-Methods",
		Checked: "2.5.3",
		Has:     []string{"msg", "heartbeat|monitor"},
		Field:   "data",
		Templates: source.Templates{
			Title: `{{ default "Uptime Kuma" .monitor.name }}`,
			Body: `{{ default (default "The state has changed." .heartbeat.msg) .msg }}
{{- with .monitor.url }}{{ if hasPrefix "http" . }}{{ if gt (len .) 8 }}
{{ . }}{{ end }}{{ end }}{{ end }}`,
			Type: `{{ if eq .heartbeat.status 0 }}failure{{ else if eq .heartbeat.status 1 }}success{{ else }}info{{ end }}`,
			// A test and a warning about a certificate have no monitor.
			Incident: `{{ .monitor.id }}`,
		},
	})
}
