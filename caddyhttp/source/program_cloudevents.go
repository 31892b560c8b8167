package source

func init() {
	register(Format{
		Name:    "cloudevents",
		Program: "CloudEvents",
		Doc:     "https://github.com/cloudevents/spec/blob/main/cloudevents/bindings/http-protocol-binding.md",
		Tokens:  []TokenPlace{{Query: "access_token"}},
		Templates: Templates{
			Title: `{{ default (default "CloudEvent" (header "Ce-Type")) .type }}`,
			Body: `{{ $structured := .specversion }}{{ $data := . }}{{ if $structured }}{{ $data = .data }}{{ end -}}
{{ with default (default (default (json $data) $data.text) $data.msg) $data.message }}{{ if not (eq . "null" "{}") }}{{ cut 2000 . }}
{{ end }}{{ end }}
{{- with default (header "Ce-Source") .source }}Source: {{ . }}
{{ end }}
{{- with default (header "Ce-Subject") .subject }}Subject: {{ . }}{{ end }}`,
			Type: `{{ $data := . }}{{ if .specversion }}{{ $data = .data }}{{ end -}}
{{ type (default (default (default $data.status $data.state) $data.level) $data.severity) }}`,
		},
	})
}
