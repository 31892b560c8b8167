package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "gitlab",
		Program: "GitLab",
		Doc:     "https://docs.gitlab.com/user/project/integrations/webhook_events/",
		Checked: "2026-09-05",
		Has:     []string{"object_kind|event_name"},
		Header:  "X-Gitlab-Event",
		Tokens:  []source.TokenPlace{{Header: "X-Gitlab-Token"}},
		Scheme:  source.SchemeStandard,
		Templates: source.Templates{
			Title: `{{ $kind := capitalize (replace "_" " " (default (default "event" .event_name) .object_kind)) -}}
{{ $o := .object_attributes -}}
{{ if eq .object_kind "push" "tag_push" }}{{ default "Somebody" .user_name }} ` + pushTitle + `
{{- else if eq .object_kind "build" }}Job {{ .build_name }} {{ .build_status }}
{{- else if eq .object_kind "pipeline" }}Pipeline {{ with $o.name }}{{ . }} {{ end }}{{ default $o.iid $o.id }} {{ $o.status }}
{{- else if eq .object_kind "deployment" }}Deployment to {{ .environment }} {{ .status }}
{{- else if eq .object_kind "note" }}Comment by {{ default "somebody" .user.name }}
{{- else if eq .object_kind "emoji" }}{{ default "Somebody" .user.name }} {{ if eq $o.action "revoke" }}removed{{ else }}added{{ end
	}} the reaction {{ $o.name }}
{{- else if eq .object_kind "feature_flag" }}Feature flag {{ $o.name }} {{ if $o.active }}on{{ else }}off{{ end }}
{{- else if eq .object_kind "access_token" }}Access token {{ $o.name }} expires{{ with $o.expires_at }} on {{ . }}{{ end }}
{{- else if eq .object_kind "release" }}Release {{ .tag }} {{ .action }}
{{- else }}{{ $kind }}{{ with $o.iid }} {{ . }}{{ end }}{{ with default (default (default $o.state $o.action) $o.status) .action }} {{ .
	}}{{ end }}{{ end }}
{{- with default (default (default (default (default .full_path .group_path) .group.group_path) .project_name) .repository.name)
	.project.path_with_namespace }}: {{ . }}{{ end }}`,
			Body: `{{ $o := .object_attributes -}}
{{ $project := default .repository.homepage .project.web_url -}}
{{ $about := default (default .snippet.title .merge_request.title) .issue.title -}}
{{ if eq .object_kind "pipeline" }}{{ $about = "" }}{{ end -}}
{{ with default (default (default (default $about .name) .commit.message) $o.title) .commit.title }}{{ line . }}
{{ end }}
{{- with $o.note }}{{ cut 500 . }}
{{ end }}
{{- with .commit_title }}{{ . }}
{{ end }}
{{- if and .event_name (not .object_kind) }}{{ with .user_name }}{{ . }}
{{ end }}{{ end }}
{{- if eq .object_kind "feature_flag" }}{{ with $o.description }}{{ . }}
{{ end }}{{ end }}
{{- with default (default .ref $o.source_branch) $o.ref }}{{ if not (eq $.object_kind "push" "tag_push") }}Ref: {{ . }}
{{ end }}{{ end }}
{{- with $o.severity }}{{ if ne (lower .) "unknown" }}Severity: {{ . }}
{{ end }}{{ end }}
{{- $failed := where "status" "failed" .builds -}}
{{ range first 10 $failed }}Failed: {{ .name }} ({{ .stage }}){{ if .allow_failure }}, which may fail{{ end }}
{{ end }}{{ with more 10 $failed }}and {{ . }} more
{{ end }}
{{- with .build_failure_reason }}{{ if and (ne . "unknown_failure") (eq $.build_status "failed") }}Reason: {{ replace "_" " " . }}
{{ end }}{{ end }}
{{- range first 10 .commits }}{{ line (default .message .title) }} ({{ .author.name }})
{{ end }}{{ if gt .total_commits_count (len .commits) }}{{ if .commits }}{{ .total_commits_count }} commits in all
{{ end }}{{ else }}{{ with more 10 .commits }}and {{ . }} more
{{ end }}{{ end }}
{{- if and (eq .object_kind "build") $project .build_id }}{{ $project }}/-/jobs/{{ .build_id }}
{{- else if and (eq .object_kind "pipeline") $project $o.id (not $o.url) }}{{ $project }}/-/pipelines/{{ $o.id }}
{{- else }}{{ default (default (default (default $project .deployable_url) .url) $o.awarded_on_url) $o.url }}{{ end }}`,
			Type: `{{ $o := .object_attributes -}}
{{ if and (eq .build_status "failed") .build_allow_failure }}warning
{{- else if eq .object_kind "vulnerability" }}{{ if eq $o.state "resolved" "dismissed" }}success{{ else }}{{ default "warning" (type
	$o.severity) }}{{ end }}
{{- else if eq .object_kind "access_token" }}warning
{{- else }}{{ type (default (default .status .build_status) $o.status) }}{{ end }}`,
			// A later pipeline on the same branch resolves the incident of an earlier one.
			Incident: `{{ $o := .object_attributes }}{{ $project := default .project_name .project.path_with_namespace -}}
{{ if eq .object_kind "pipeline" }}{{ $project }} pipeline {{ $o.name }} {{ $o.ref }}
{{- else if eq .object_kind "build" }}{{ $project }} job {{ .build_name }} {{ .ref }}
{{- else if eq .object_kind "deployment" }}{{ $project }} deployment {{ .environment }}
{{- else if eq .object_kind "vulnerability" }}{{ $o.url }}
{{- else if eq .object_kind "issue" "merge_request" "incident" }}{{ if $o.iid }}{{ $project }} {{ .object_kind }} {{ $o.iid }}{{ end }}
{{- else if eq .object_kind "note" }}
	{{- with .issue.iid }}{{ $project }} issue {{ . }}{{ end }}{{ with .merge_request.iid }}{{ $project }} merge_request {{ . }}{{ end }}{{
	end }}`,
		},
	})
}
