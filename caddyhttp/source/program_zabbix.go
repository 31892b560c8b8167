package source

func init() {
	register(Format{
		Name:    "zabbix",
		Program: "Zabbix",
		Doc:     "https://www.zabbix.com/documentation/current/en/manual/config/notifications/media/webhook",
		Checked: "8.0",
		Templates: Templates{
			Title: `{{ default "Zabbix" .subject }}`,
			// The address of the gateway, which a script may send along, is no
			// part of the message: it may have a token.
			Body: `{{ .message }}{{ with .url }}{{ if not (contains "/notify/" .) }}
{{ . }}{{ end }}{{ end }}`,
			// A test of the media type leaves macros such as {EVENT.SEVERITY} as
			// they are.
			Type: `{{ if eq (upper .status) "OK" "RESOLVED" }}success{{ else if hasPrefix "Resolved" .subject }}success
{{- else if or (hasPrefix "{" .severity) (eq .update "1") (eq .severity "Not classified" "Information") }}info
{{- else }}{{ default "failure" (type .severity) }}{{ end }}`,
		},
	})
}
