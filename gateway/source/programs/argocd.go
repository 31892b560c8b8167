package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

// Parts of the templates for Argo CD. The body in docs/program-setups.md has some fields of the
// application; other bodies have all of it in the field app.
const argocdValues = `{{ $name := default .app .app.metadata.name -}}
{{ $health := default (default .health .health.status) .app.status.health.status -}}
{{ $sync := default (default .sync .sync.status) .app.status.sync.status -}}
{{ $operation := default .operation .app.status.operationState -}}
{{ $failed := eq $operation.phase "Failed" "Error" -}}`

func init() {
	source.Register(source.Format{
		Name:    "argocd",
		Program: "Argo CD",
		Doc:     "https://argo-cd.readthedocs.io/en/stable/operator-manual/notifications/services/webhook/",
		Checked: "3.6.0 of 2026-08-22",
		Has:     []string{"app", "health|sync|operation|app.status", "project|url|namespace|conditions|app.spec?"},
		Templates: source.Templates{
			Title: argocdValues + `
{{ $name }}{{ if $failed }}: sync has failed
{{- else if eq $operation.phase "Running" }}: sync is running
{{- else if eq $sync "Unknown" }}: state is unknown
{{- else }} is {{ lower (default (default "unknown" $sync) $health) }}{{ end }}`,
			Body: argocdValues + `
{{- if ne $operation.phase "Succeeded" }}{{ with $operation.message }}{{ cut 1000 . }}
{{ end }}{{ end }}
{{- range first 5 (default .conditions .app.status.conditions) }}{{ .type }}: {{ cut 500 .message }}
{{ end }}
{{- with .health.message }}{{ . }}
{{ end }}
{{- with $health }}Health: {{ . }}
{{ end }}
{{- with $sync }}Sync: {{ . }}
{{ end }}
{{- with default .revision $operation.syncResult.revision }}Revision: {{ cut 40 . }}
{{ end }}
{{- with $operation.operation.initiatedBy.username }}By: {{ . }}
{{ end }}
{{- with default .project .app.spec.project }}Project: {{ . }}
{{ end }}
{{- .url }}`,
			Type: argocdValues + `
{{ if or $failed (eq $health "Degraded") }}failure
{{- else if or (eq $sync "Unknown") (eq $health "Missing" "Unknown") }}warning
{{- else if and (eq $health "Healthy") (eq $operation.phase "Succeeded" "") }}success
{{- else }}info{{ end }}`,
			Incident: argocdValues + `{{ default (print (default .namespace .app.metadata.namespace) "/" $name) .url }}`,
		},
	})
}
