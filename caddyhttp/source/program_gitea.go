package source

func init() {
	register(Format{
		Name:    "gitea",
		Program: "Gitea and Forgejo",
		Doc:     "https://docs.gitea.com/usage/webhooks",
		Field:   "payload",
		Scheme:  schemeGitHub,
		Templates: Templates{
			Title: `{{ $event := capitalize (replace "_" " " (header "X-Gitea-Event")) -}}
{{ if .commits }}{{ default "Somebody" (default .sender.login .pusher.login) }} pushed to {{ replace "refs/heads/" "" .ref }}
{{- else if .workflow_run }}{{ .workflow_run.display_title }} {{ default (default .action .workflow_run.status) .workflow_run.conclusion }}
{{- else if .pull_request }}Pull request {{ .pull_request.number }} {{ if .pull_request.merged }}merged{{ else }}{{ .action }}{{ end }}
{{- else if .issue }}Issue {{ .issue.number }} {{ if .comment }}commented{{ else }}{{ .action }}{{ end }}
{{- else if .release }}Release {{ .release.tag_name }} {{ .action }}
{{- else }}{{ default "Gitea" $event }} {{ .action }}{{ end }}
{{- with .repository.full_name }}: {{ . }}{{ end }}`,
			Body: `{{ if .commits }}{{ range first 10 .commits }}{{ line .message }} ({{ .author.name }})
{{ end }}{{ with more 10 .commits }}and {{ . }} more
{{ end }}{{ .compare_url }}
{{- else if .workflow_run }}Branch: {{ .workflow_run.head_branch }}
{{ .workflow_run.html_url }}
{{- else if .pull_request }}{{ .pull_request.title }}
{{ .pull_request.html_url }}
{{- else if .issue }}{{ .issue.title }}
{{- with .comment.body }}
{{ cut 500 . }}{{ end }}
{{ default .issue.html_url .comment.html_url }}
{{- else if .release }}{{ .release.name }}
{{ .release.html_url }}
{{- else }}{{ with .sender.login }}by {{ . }}
{{ end }}{{ with .ref }}Ref: {{ . }}
{{ end }}{{ .repository.html_url }}{{ end }}`,
			Type: `{{ type .workflow_run.conclusion }}`,
		},
	})
}
