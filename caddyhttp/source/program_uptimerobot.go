package source

func init() {
	register(Format{
		Name:    "uptimerobot",
		Program: "UptimeRobot",
		Doc:     "https://help.uptimerobot.com/en/articles/11360876-how-to-set-up-webhook-notifications",
		Templates: Templates{
			Title: `{{ default "A monitor" .monitorFriendlyName }} is {{ lower (default "unknown" .alertTypeFriendlyName) }}`,
			Body: `{{ with .alertDetails }}{{ . }}
{{ end }}
{{- with .alertDuration }}{{ if ne . "0" }}After {{ duration . }}
{{ end }}{{ end }}
{{- .monitorURL }}`,
			Type: `{{ if eq .alertType 1 }}failure{{ else if eq .alertType 2 }}success{{ else if eq .alertType 3 }}warning{{ else }}{{ type .alertTypeFriendlyName }}{{ end }}`,
		},
	})
}
