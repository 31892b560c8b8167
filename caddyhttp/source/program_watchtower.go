package source

func init() {
	register(Format{
		Name:    "watchtower",
		Program: "Watchtower",
		Doc:     "https://watchtower.nickfedor.com/latest/notifications/overview/",
		Templates: Templates{
			Title: `{{ default "Watchtower" .title }}`,
			Body:  `{{ .message }}`,
			Type:  `info`,
		},
	})
}
