{{- define "gvDetails" -}}
# {{ .GroupVersionString }}

Generated from the types in `api/` (`make generate`; `make generated` compares). `kubectl explain` says the same.
{{ range .SortedTypes }}{{ template "type" . }}{{ end -}}
{{- end -}}
