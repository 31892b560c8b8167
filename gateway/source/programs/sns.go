package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

// Parts of the templates for Amazon SNS. The message of a CloudWatch alarm or of an EventBridge
// rule is JSON, and a rule can be about an alarm, too.
const (
	snsAlarm = `{{ $m := fromJSON .Message }}{{ $d := "" }}{{ if eq $m.source "aws.cloudwatch" }}{{ $d = $m.detail }}{{ end -}}
{{ $name := default $d.alarmName $m.AlarmName }}{{ $state := default $d.state.value $m.NewStateValue -}}
{{ $arn := default (index $m.resources 0) $m.AlarmArn -}}`

	// snsMetric prints a metric and its dimensions.
	snsMetric = `Metric: {{ default .namespace .Namespace }} {{ default .name .MetricName }}{{ range $n := first 10 (default .dimensions
	.Dimensions) }}{{ with $n.name }}, {{ . }}: {{ $n.value }}{{ end }}{{ end }}
`
)

func init() {
	source.Register(source.Format{
		Name:    "sns",
		Program: "Amazon SNS",
		Doc:     "https://docs.aws.amazon.com/sns/latest/dg/http-notification-json.html",
		Checked: "2010-03-31, SignatureVersion 2",
		Has:     []string{"Type", "TopicArn", "Message|SubscribeURL"},
		Scheme:  source.SchemeSNS,
		Signed:  true,
		Templates: source.Templates{
			Title: snsAlarm + `
{{ if .Subject }}{{ .Subject }}{{ else if and $name $state }}{{ $state }}: "{{ $name }}"{{ with index (split ":" $arn) 3 }} in {{ . }}{{
	end }}
{{- else }}{{ default (default (index (split ":" .TopicArn) 5) (index $m "detail-type")) $m.AlarmName }}{{ end }}`,
			// Amazon's own mails have this link. The partitions for China and the government have
			// other hosts.
			Body: snsAlarm + `
{{ if and $name $state }}
	{{- with default $d.configuration.description $m.AlarmDescription }}{{ . }}
{{ end }}
	{{- with default $d.state.reason $m.NewStateReason }}{{ . }}
{{ end }}
	{{- with $m.Trigger }}{{ if .MetricName }}` + snsMetric + `{{ end }}
		{{- range first 10 .Metrics }}{{ with .MetricStat.Metric }}` + snsMetric + `{{ else }}{{ with .Expression }}Expression: {{ . }}
{{ end }}{{ end }}{{ end }}{{ end }}
	{{- range first 10 $d.configuration.metrics }}{{ with .metricStat.metric }}Metric: {{ .namespace }} {{ .name }}{{ with .dimensions }}, {{
	join ", " (pairs .) }}{{ end }}
{{ end }}{{ end }}
	{{- with $m.AlarmRule }}Rule: {{ cut 500 . }}
{{ end }}
	{{- range first 10 $m.TriggeringChildren }}{{ with index (split ":" .Arn) 6 }}Alarm: {{ . }}
{{ end }}{{ end }}
	{{- with default $d.previousState.value $m.OldStateValue }}State: {{ $state }} (before: {{ . }})
{{ end }}
	{{- with default (default $m.region $m.Region) (index (split ":" $arn) 3) }}Region: {{ . }}
{{ end }}
	{{- with default $m.account $m.AWSAccountId }}Account: {{ . }}
{{ end }}
	{{- $region := index (split ":" $arn) 3 }}{{ $host := "console.aws.amazon.com" -}}
	{{ if hasPrefix "arn:aws-cn:" $arn }}{{ $host = "console.amazonaws.cn" }}{{ else if hasPrefix "arn:aws-us-gov:" $arn }}{{ $host =
	"console.amazonaws-us-gov.com" }}{{ end -}}
	{{ if hasPrefix "arn:" $arn }}https://{{ $region }}.{{ $host }}/cloudwatch/deeplink.js?region={{ $region }}#alarmsV2:alarm/{{ replace "+"
	"%20" (urlquery $name) }}{{ end }}
{{- else }}{{ .Message }}{{ end }}`,
			Type:     snsAlarm + `{{ if eq $state "ALARM" }}failure{{ else if eq $state "OK" }}success{{ else if $state }}warning{{ end }}`,
			Skip:     `{{ if eq .Type "SubscriptionConfirmation" "UnsubscribeConfirmation" }}true{{ end }}`,
			Incident: snsAlarm + `{{ if $name }}{{ default (print $m.AWSAccountId " " $m.Region " " $name) $arn }}{{ end }}`,
		},
	})
}
