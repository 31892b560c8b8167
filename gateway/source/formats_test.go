package source

// The built-in formats of tests. Those of package programs cannot be imported here, because
// programs imports this package.
func init() {
	Register(Format{
		Name: "github", Program: "GitHub", Has: []string{"repository"}, Templates: Templates{Title: `{{ .repository.full_name }}`},
		Field: "payload",
	})
	Register(Format{
		Name: "proxmox", Program: "Proxmox", Has: []string{"message"},
		Templates: Templates{Title: `{{ .title }}`, Body: `{{ .message }}`},
	})
	Register(Format{
		Name: "sns", Program: "Amazon SNS", Has: []string{"TopicArn"}, Templates: Templates{Body: `{{ .Message }}`},
		Scheme: SchemeSNS, Signed: true,
	})
}
