package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "diun",
		Program: "Diun",
		Doc:     "https://crazymax.dev/diun/notif/webhook/",
		Checked: "4.33.0",
		Has:     []string{"diun_version", "image|status"},
		Templates: source.Templates{
			Title: `{{ default "Diun" .image }}: {{ default "new" .status }}`,
			Body: `{{ with .hostname }}Host: {{ . }}
{{ end }}
{{- with .provider }}Provider: {{ . }}
{{ end }}
{{- with .metadata.ctn_names }}Container: {{ . }}
{{ end }}
{{- with .platform }}Platform: {{ . }}
{{ end }}
{{- with .digest }}Digest: {{ . }}
{{ end }}
{{- .hub_link }}`,
			Type: `info`,
		},
	})
}
