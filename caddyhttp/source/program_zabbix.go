package source

func init() {
	register(Format{
		Name:    "zabbix",
		Program: "Zabbix",
		Doc:     "https://www.zabbix.com/documentation/current/en/manual/config/notifications/media/webhook",
		Templates: Templates{
			Title: `{{ default "Zabbix" .subject }}`,
			Body: `{{ .message }}{{ with .url }}
{{ . }}{{ end }}`,
			Type: `{{ if eq (upper .status) "OK" "RESOLVED" }}success{{ else if hasPrefix "Resolved" .subject }}success{{ else if eq .severity "Not classified" "Information" }}info{{ else }}{{ default "failure" (type .severity) }}{{ end }}`,
		},
	})
}
