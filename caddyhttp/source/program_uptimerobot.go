package source

func init() {
	register(Format{
		Name:    "uptimerobot",
		Program: "UptimeRobot",
		Doc:     "https://help.uptimerobot.com/en/articles/14498593-webhook-integration",
		Templates: Templates{
			// UptimeRobot sends the name of a variable, such as *sslExpiryDate*,
			// if an alert has no value for it.
			Title: `{{ default "A monitor" .monitorFriendlyName }}
{{- if eq .alertType 3 }}: {{ default "certificate or domain" .alertTypeFriendlyName }}{{ else }} is {{ lower (default "unknown" .alertTypeFriendlyName) }}{{ end }}`,
			Body: `{{ with .alertDetails }}{{ if not (hasPrefix "*" .) }}{{ . }}
{{ end }}{{ end }}
{{- with .alertDuration }}{{ if and (ne . "0") (not (hasPrefix "*" .)) }}After {{ duration . }}
{{ end }}{{ end }}
{{- with .sslExpiryDate }}{{ if not (hasPrefix "*" .) }}Certificate expires: {{ . }}
{{ end }}{{ end }}
{{- with .domainExpireDate }}{{ if not (hasPrefix "*" .) }}Domain expires: {{ . }}
{{ end }}{{ end }}
{{- .monitorURL }}`,
			Type: `{{ if eq .alertType 1 }}failure{{ else if eq .alertType 2 }}success{{ else if eq .alertType 3 }}warning{{ else }}{{ type .alertTypeFriendlyName }}{{ end }}`,
		},
	})
}
