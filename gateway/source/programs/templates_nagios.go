package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

// Parts of the templates for Nagios, Icinga and Checkmk, whose notifications have the same types
// and states. A command posts them in the fields given in docs/program-setups.md.
const (
	nagiosTitle = `{{ $what := .host }}{{ with .service }}{{ $what = print $.host "/" . }}{{ end -}}
{{ $type := upper .notification_type -}}
{{ if eq $type "ACKNOWLEDGEMENT" }}{{ $what }} ({{ upper .state }}): acknowledged
{{- else if eq $type "FLAPPINGSTART" }}{{ $what }} ({{ upper .state }}): flapping
{{- else if hasPrefix "FLAPPING" $type }}{{ $what }} ({{ upper .state }}): flapping has ended
{{- else if eq $type "DOWNTIMESTART" }}{{ $what }} ({{ upper .state }}): downtime has started
{{- else if eq $type "DOWNTIMECANCELLED" }}{{ $what }} ({{ upper .state }}): downtime is cancelled
{{- else if hasPrefix "DOWNTIME" $type }}{{ $what }} ({{ upper .state }}): downtime has ended
{{- else }}{{ $what }} is {{ upper .state }}{{ end }}`

	nagiosBody = `{{ with .output }}{{ . }}
{{ end }}
{{- with .long_output }}{{ replace "\\n" "\n" . }}
{{ end }}
{{- if or .author .comment }}{{ .author }}{{ with .comment }}{{ if $.author }}: {{ end }}{{ . }}{{ end }}
{{ end }}
{{- with .address }}Address: {{ . }}
{{ end }}
{{- with .site }}Site: {{ . }}
{{ end }}
{{- with .url }}{{ if hasPrefix "http" . }}{{ . }}{{ end }}{{ end }}`

	// nagiosType is the type of the state when a problem begins or changes, or flapping ends.
	nagiosType = `{{ $type := upper .notification_type -}}
{{ if eq $type "ACKNOWLEDGEMENT" }}acknowledged
{{- else if eq $type "FLAPPINGSTART" }}warning
{{- else if eq $type "RECOVERY" }}success
{{- else if or (eq $type "PROBLEM") (hasPrefix "FLAPPING" $type) }}{{ default "failure" (type .state) }}
{{- else }}info{{ end }}`

	nagiosIncident = `{{ with .site }}{{ . }} {{ end }}{{ .host }}{{ with .service }} {{ . }}{{ end }}`
)

var (
	nagiosHas       = []string{"notification_type", "host", "state|output", "service|author|comment?"}
	nagiosTemplates = source.Templates{Title: nagiosTitle, Body: nagiosBody, Type: nagiosType, Incident: nagiosIncident}
)
