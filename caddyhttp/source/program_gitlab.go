package source

func init() {
	register(Format{
		Name:    "gitlab",
		Program: "GitLab",
		Doc:     "https://docs.gitlab.com/user/project/integrations/webhook_events/",
		Tokens:  []TokenPlace{{Header: "X-Gitlab-Token"}},
		Scheme:  schemeStandard,
		Templates: Templates{
			Title: `{{ $kind := capitalize (replace "_" " " (default "event" .object_kind)) -}}
{{ $o := .object_attributes -}}
{{ if eq .object_kind "push" "tag_push" }}{{ default "Somebody" .user_name }} pushed to {{ replace "refs/heads/" "" (replace "refs/tags/" "" .ref) }}
{{- else if eq .object_kind "build" }}Job {{ .build_name }} {{ .build_status }}
{{- else if eq .object_kind "deployment" }}Deployment to {{ .environment }} {{ .status }}
{{- else if eq .object_kind "note" }}Comment by {{ default "somebody" .user.name }}
{{- else if eq .object_kind "release" }}Release {{ .tag }} {{ .action }}
{{- else }}{{ $kind }}{{ with $o.iid }} {{ . }}{{ end }} {{ default (default $o.state $o.action) $o.status }}{{ end }}
{{- with default (default .project_name .repository.name) .project.path_with_namespace }}: {{ . }}{{ end }}`,
			Body: `{{ $o := .object_attributes -}}
{{ with default (default (default .name .commit.message) $o.title) .commit.title }}{{ line . }}
{{ end }}
{{- with $o.note }}{{ cut 500 . }}
{{ end }}
{{- with default (default .ref $o.source_branch) $o.ref }}{{ if not $.commits }}Ref: {{ . }}
{{ end }}{{ end }}
{{- range first 10 .commits }}{{ line (default .message .title) }} ({{ .author.name }})
{{ end }}{{ with more 10 .commits }}and {{ . }} more
{{ end }}
{{- default (default (default .project.web_url .deployable_url) .url) $o.url }}`,
			Type: `{{ type (default (default .status .build_status) .object_attributes.status) }}`,
		},
	})
}
