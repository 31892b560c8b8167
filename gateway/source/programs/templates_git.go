package programs

// Parts of the templates for GitHub and Gitea, which have similar payloads.
const (
	// commentOrAction prints the event of an issue, a pull request or a discussion.
	commentOrAction = `{{ if .review }}{{ replace "_" " " (replace "pull_request_review_" "" (default "reviewed" (default .review.type
	.review.state))) }}
	{{- else if .comment }}{{ if eq .action "created" }}commented{{ else }}comment {{ .action }}{{ end }}
	{{- else if .thread }}thread {{ .action }}
	{{- else if and .pull_request.merged (eq .action "closed") }}merged
	{{- else }}{{ replace "_" " " .action }}{{ end }}`

	// pushTitle prints the change of a push. A push that deletes a branch or tag has zeros as the
	// new commit.
	pushTitle = `{{ $ref := replace "refs/tags/" "" (replace "refs/heads/" "" .ref) -}}
{{ if or .deleted (hasPrefix "0000000000" .after) }}deleted{{ else if .commits }}{{ if .forced }}force-{{ end }}pushed to{{ else if
	.created }}created{{ else }}pushed to{{ end }} {{ $ref }}`
)
