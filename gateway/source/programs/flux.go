package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "flux",
		Program: "Flux",
		Doc:     "https://fluxcd.io/flux/components/notification/providers/#generic-webhook",
		Checked: "notification-controller 1.9.0; events of 2026-07-22",
		Has:     []string{"involvedObject.kind|involvedObject.name", "reason", "severity|reportingController"},
		Header:  "Gotk-Component",
		Scheme:  source.SchemeFlux,
		Templates: source.Templates{
			Title: `{{ .involvedObject.kind }} {{ with .involvedObject.namespace }}{{ . }}/{{ end }}{{ .involvedObject.name }}: {{ .reason }}`,
			// The keys of metadata may have the group of the object as a prefix. Digests and tokens
			// are only for programs.
			Body: `{{ .message }}
{{- range first 20 (pairs .metadata) }}
	{{- $line := . | replace "kustomize.toolkit.fluxcd.io/" "" | replace "helm.toolkit.fluxcd.io/" "" | replace "source.toolkit.fluxcd.io/"
	"" | replace "image.toolkit.fluxcd.io/" "" | replace "event.toolkit.fluxcd.io/" "" -}}
	{{- if not (eq (index (split ":" $line) 0) "checksum" "digest" "token" "commit_status" "change_request") }}
{{ capitalize $line }}{{ end -}}
{{- end }}`,
			// A rollback follows a failed upgrade, so the object is not in the desired state.
			Type: `{{ if eq .severity "error" }}failure
{{- else if eq .reason "RollbackSucceeded" }}warning
{{- else if eq .reason "UninstallSucceeded" }}info
{{- else if or (hasSuffix "Succeeded" .reason) (eq .reason "NewArtifact") }}success
{{- else }}info{{ end }}`,
			Incident: `{{ with .metadata.cluster }}{{ . }} {{ end }}{{ .involvedObject.kind }} {{ .involvedObject.namespace }}/{{ ` +
				`.involvedObject.name }}`,
		},
	})
}
