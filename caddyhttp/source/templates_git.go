package source

// Parts of the templates for GitHub and for Gitea, whose payloads resemble those
// of GitHub.
const (
	// commentOrAction is what happened to an issue, a pull request or a
	// discussion, after its number.
	commentOrAction = `{{ if .review }}{{ replace "_" " " (replace "pull_request_review_" "" (default "reviewed" (default .review.type .review.state))) }}
	{{- else if .comment }}{{ if eq .action "created" }}commented{{ else }}comment {{ .action }}{{ end }}
	{{- else if .thread }}thread {{ .action }}
	{{- else if and .pull_request.merged (eq .action "closed") }}merged
	{{- else }}{{ replace "_" " " .action }}{{ end }}`

	// pushTitle is what a push did, after the name of who pushed. A push that
	// deletes a branch or tag has zeros for the new commit.
	pushTitle = `{{ $ref := replace "refs/tags/" "" (replace "refs/heads/" "" .ref) -}}
{{ if or .deleted (hasPrefix "0000000000" .after) }}deleted{{ else if .commits }}{{ if .forced }}force-{{ end }}pushed to{{ else if .created }}created{{ else }}pushed to{{ end }} {{ $ref }}`
)
