package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "readarr",
		Program: "Readarr",
		Doc:     "https://wiki.servarr.com/readarr/settings#connections",
		Checked: "0.3.21",
		Has: []string{
			"eventType", "author|book|books|level|message|newVersion|instanceName",
			"author|book|books|instanceName~Readarr?", "instanceName~Readarr?",
		},
		// Readarr does not report the end of a health issue, so nothing would resolve an incident.
		Templates: source.Templates{
			Title: `{{ $book := default (index .books 0) .book -}}
{{ with .author.name }}{{ . }}{{ with $book.title }}: {{ . }}{{ end }}{{ with more 1 $.books }} and {{ . }} more{{ end }}{{ else }}{{
	default "Readarr" .instanceName }}{{ end }}`,
			Body: servarrEvent + `
{{- $file := default (index .bookFiles 0) .bookFile }}` + servarrDetails,
			Type: servarrType,
		},
	})
}
