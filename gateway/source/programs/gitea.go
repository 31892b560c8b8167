package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "gitea",
		Program: "Gitea and Forgejo",
		Doc:     "https://docs.gitea.com/usage/webhooks",
		Checked: "1.27.3; Forgejo 15.0.1",
		Has: []string{
			"repository.full_name|sender.login|package|run|organization.name",
			"sender.login_name|compare_url|total_commits|pusher.login|is_pull|review.content|package.owner|run.prettyref?",
		},
		Header: "X-Gitea-Event",
		Field:  "payload",
		Scheme: source.SchemeGitHub,
		Templates: source.Templates{
			Title: `{{ $event := capitalize (replace "_" " " (header "X-Gitea-Event")) -}}
{{ $who := default "Somebody" (default .pusher.login .sender.login) -}}
{{ if .workflow_run }}{{ default "Workflow" .workflow_run.display_title }} {{ replace "_" " " (default (default .action
	.workflow_run.status) .workflow_run.conclusion) }}
{{- else if .workflow_job }}{{ default "Job" .workflow_job.name }} {{ replace "_" " " (default (default .action .workflow_job.status)
	.workflow_job.conclusion) }}
{{- else if .run }}{{ default "Workflow" .run.title }} {{ if eq .action "recover" }}recovered{{ else }}{{ .action }}{{ end }}
{{- else if .context }}{{ .context }} {{ .state }}
{{- else if or .pull_request .issue }}{{ if or .pull_request .is_pull }}Pull request{{ else }}Issue{{ end }} {{ default (default .number
	.issue.number) .pull_request.number }} ` + commentOrAction + `
{{- else if .release }}Release {{ .release.tag_name }} {{ .action }}
{{- else if .package }}Package {{ .package.name }} {{ .package.version }} {{ .action }}
{{- else if .forkee }}{{ $who }} forked
{{- else if .ref_type }}{{ $who }} {{ if eq $event "Delete" }}deleted{{ else }}created{{ end }} {{ .ref_type }} {{ .ref }}
{{- else if or .after .commits }}{{ $who }} ` + pushTitle + `
{{- else if .page }}Wiki page {{ .page }} {{ .action }}
{{- else }}{{ default "Gitea" $event }}{{ with .action }} {{ . }}{{ end }}{{ end }}
{{- with default (default .package.owner.login .run.repository.full_name) .repository.full_name }}: {{ . }}{{ end }}`,
			Body: `{{ if .workflow_run }}Branch: {{ .workflow_run.head_branch }}
{{ .workflow_run.html_url }}
{{- else if .workflow_job }}Branch: {{ .workflow_job.head_branch }}
{{ .workflow_job.html_url }}
{{- else if .run }}Branch: {{ .run.prettyref }}
{{ .run.html_url }}
{{- else if .context }}{{ with .description }}{{ . }}
{{ end }}{{ line .commit.message }}
{{ default .commit.url .target_url }}
{{- else if or .pull_request .issue }}{{ default .issue.title .pull_request.title }}
{{- with default .review.content .comment.body }}
{{ cut 500 . }}{{ end }}
{{ default (default .issue.html_url .pull_request.html_url) .comment.html_url }}
{{- else if .release }}{{ .release.name }}
{{ .release.html_url }}
{{- else if .package }}{{ with .sender.login }}by {{ . }}
{{ end }}{{ .package.html_url }}
{{- else if .commits }}{{ range first 10 .commits }}{{ line .message }} ({{ .author.name }})
{{ end }}{{ if gt .total_commits (len .commits) }}{{ .total_commits }} commits in all
{{ else }}{{ with more 10 .commits }}and {{ . }} more
{{ end }}{{ end }}{{ .compare_url }}
{{- else }}{{ with .comment }}{{ . }}
{{ end }}{{ with .sender.login }}by {{ . }}
{{ end }}{{ .repository.html_url }}{{ end }}`,
			Type: `{{ if .workflow_run }}{{ type .workflow_run.conclusion }}
{{- else if .workflow_job }}{{ type .workflow_job.conclusion }}
{{- else if .run }}{{ if eq .action "recover" }}success{{ else }}{{ type .action }}{{ end }}
{{- else if .context }}{{ type .state }}{{ end }}`,
			// A later run on the same branch resolves the incident of an earlier one.
			Incident: `{{ $repository := default .run.repository.full_name .repository.full_name -}}
{{ if .workflow_run }}{{ $repository }} workflow {{ default .workflow_run.name .workflow_run.path }} {{ .workflow_run.head_branch }}
{{- else if .workflow_job }}{{ $repository }} job {{ .workflow_job.name }} {{ .workflow_job.head_branch }}
{{- else if .run }}{{ $repository }} workflow {{ .run.workflow_id }} {{ .run.prettyref }}
{{- else if .context }}{{ $repository }} status {{ .context }} {{ .sha }}
{{- else if or .pull_request .issue }}{{ $repository }} {{ default (default .number .issue.number) .pull_request.number }}{{ end }}`,
		},
	})
}
