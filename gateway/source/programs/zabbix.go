package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "zabbix",
		Program: "Zabbix",
		Doc:     "https://www.zabbix.com/documentation/current/en/manual/config/notifications/media/webhook",
		Checked: "8.0",
		Has:     []string{"subject", "message", "status|severity?"},
		Templates: source.Templates{
			Title: `{{ default "Zabbix" .subject }}`,
			// A script may send the gateway's own address as the URL. It is left out, because it
			// may have a token.
			Body: `{{ .message }}{{ with .url }}{{ if not (contains "/notify/" .) }}
{{ . }}{{ end }}{{ end }}`,
			// A test of the media type does not replace macros such as {EVENT.SEVERITY}.
			Type: `{{ if eq (upper .status) "OK" "RESOLVED" }}success{{ else if hasPrefix "Resolved" .subject }}success
{{- else if and (eq .update "1") (eq .acknowledged "Yes") }}acknowledged
{{- else if or (hasPrefix "{" .severity) (eq .update "1") (eq .severity "Not classified" "Information") }}info
{{- else }}{{ default "failure" (type .severity) }}{{ end }}`,
			// The recovery event has the event ID of the problem.
			Incident: `{{ if not (hasPrefix "{" .eventid) }}{{ .eventid }}{{ end }}`,
		},
	})
}
