package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "docker_registry",
		Program: "Distribution (Docker Registry)",
		Doc:     "https://distribution.github.io/distribution/about/notifications/",
		Checked: "3.1.1",
		Has:     []string{"events[].target", "events[].action"},
		Templates: source.Templates{
			Title: `{{ with .events }}{{ len . }} {{ if eq (len .) 1 }}event{{ else }}events{{ end }} of the registry{{ end }}`,
			Body: `{{ range first 20 .events }}{{ .action }} {{ .target.repository }}{{ with .target.tag }}:{{ . }}{{ else }}{{ with .target.digest
	}}@{{ . }}{{ end }}{{ end }}{{ with .actor.name }} by {{ . }}{{ end }}
{{ end }}{{ with more 20 .events }}and {{ . }} more{{ end }}`,
			Type: `info`,
		},
	})
}
