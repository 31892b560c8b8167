package source

func init() {
	register(Format{
		Name:    "sns",
		Program: "Amazon SNS",
		Doc:     "https://docs.aws.amazon.com/sns/latest/dg/http-notification-json.html",
		Scheme:  schemeSNS,
		Signed:  true,
		Templates: Templates{
			Title: `{{ $m := fromJSON .Message }}{{ default (default (index (split ":" .TopicArn) 5) $m.AlarmName) .Subject }}`,
			Body: `{{ $m := fromJSON .Message }}{{ if $m.AlarmName }}{{ with $m.AlarmDescription }}{{ . }}
{{ end }}{{ $m.NewStateReason }}{{ with $m.Region }}
Region: {{ . }}{{ end }}{{ else }}{{ .Message }}{{ end }}`,
			Type: `{{ $m := fromJSON .Message }}{{ if eq $m.NewStateValue "ALARM" }}failure{{ else if eq $m.NewStateValue "OK" }}success{{ else if $m.NewStateValue }}warning{{ end }}`,
			Skip: `{{ if eq .Type "SubscriptionConfirmation" "UnsubscribeConfirmation" }}true{{ end }}`,
		},
	})
}
