{{- define "type_members" -}}
{{- if eq .Name "metadata" -}}
See the [API documentation](https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/) of Kubernetes.
{{- else -}}
{{ markdownRenderFieldDoc .Doc }}
{{- end -}}
{{- end -}}
