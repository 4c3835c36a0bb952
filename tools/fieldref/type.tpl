{{- define "type" -}}
{{- $type := . -}}
{{- if markdownShouldRenderType $type }}

## {{ $type.Name }}

{{ $type.Doc }}
{{- if $type.IsAlias }}

Underlying type: {{ markdownRenderTypeLink $type.UnderlyingType }}
{{- end }}
{{- if $type.Validation }}

Validation:
{{ range $type.Validation }}
* {{ . }}
{{- end }}
{{- end }}
{{- if $type.References }}

Used in: {{ range $i, $r := $type.SortedReferences }}{{ if $i }}, {{ end }}{{ markdownRenderTypeLink $r }}{{ end }}
{{- end }}
{{- if $type.Members }}

| field | description | default | validation |
|---|---|---|---|
{{- if $type.GVK }}
| `apiVersion` _string_ | `{{ $type.GVK.Group }}/{{ $type.GVK.Version }}` | | |
| `kind` _string_ | `{{ $type.GVK.Kind }}` | | |
{{- end }}
{{- range $type.Members }}
| `{{ .Name }}` _{{ markdownRenderType .Type }}_ | {{ template "type_members" . }} | {{ with .Default }}{{ markdownRenderDefault . }}{{ end }} | {{ range $i, $v := .Validation }}{{ if $i }}<br>{{ end }}{{ markdownRenderFieldDoc $v }}{{ end }} |
{{- end }}
{{- end }}
{{- if $type.EnumValues }}

| value | description |
|---|---|
{{- range $type.EnumValues }}
| `{{ .Name }}` | {{ markdownRenderFieldDoc .Doc }} |
{{- end }}
{{- end }}
{{- end -}}
{{- end -}}
