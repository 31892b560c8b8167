package source

func init() {
	register(Format{
		Name:    "sns",
		Program: "Amazon SNS",
		Doc:     "https://docs.aws.amazon.com/sns/latest/dg/http-notification-json.html",
		Checked: "2010-03-31, SignatureVersion 2",
		Scheme:  schemeSNS,
		Signed:  true,
		Templates: Templates{
			Title: `{{ $m := fromJSON .Message }}{{ default (default (default (index (split ":" .TopicArn) 5) (index $m "detail-type")) $m.AlarmName) .Subject }}`,
			Body: `{{ $m := fromJSON .Message }}{{ if $m.AlarmName }}{{ with $m.AlarmDescription }}{{ . }}
{{ end }}{{ $m.NewStateReason }}{{ with $m.Region }}
Region: {{ . }}{{ end }}{{ with $m.AWSAccountId }}
Account: {{ . }}{{ end }}{{ else }}{{ .Message }}{{ end }}`,
			Type: `{{ $m := fromJSON .Message }}{{ if eq $m.NewStateValue "ALARM" }}failure{{ else if eq $m.NewStateValue "OK" }}success{{ else if $m.NewStateValue }}warning{{ end }}`,
			Skip: `{{ if eq .Type "SubscriptionConfirmation" "UnsubscribeConfirmation" }}true{{ end }}`,
		},
	})
}
