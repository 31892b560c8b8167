package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "truenas",
		Program: "TrueNAS",
		Doc:     "https://www.truenas.com/docs/scale/scaleuireference/toptoolbar/alerts/alertservicesscreen/",
		Checked: "26.0.0-BETA.3",
		Has:     []string{"text"},
		Templates: source.Templates{
			Title: `{{ $first := line .text }}{{ if hasPrefix "TrueNAS" $first }}{{ $first }}{{ else }}TrueNAS{{ end }}`,
			Body: `{{ $text := trim .text }}{{ $first := line .text }}{{ if hasPrefix "TrueNAS" $first }}{{ $text = trim (replace $first "" $text)
	}}{{ end -}}
{{ $text | replace "&lt;" "<" | replace "&gt;" ">" | replace "&amp;" "&" }}`,
			Type: `{{ $text := lower .text -}}
{{ if contains "new alert" $text }}{{ if contains "degraded" $text }}failure{{ else if contains "critical" $text }}failure{{ else if
	contains "fault" $text }}failure{{ else if contains "fail" $text }}failure{{ else }}warning{{ end }}
{{- else if contains "cleared" $text }}success{{ else }}info{{ end }}`,
		},
	})
}
