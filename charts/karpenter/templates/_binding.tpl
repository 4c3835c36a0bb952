{{/* The binding of a Role to the controller. Called with the root, the namespace and the name of both. */}}
{{- define "karpenter.roleBinding" -}}
{{- $root := index . 0 }}
{{- $namespace := index . 1 }}
{{- $name := index . 2 -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  labels:
    {{- include "karpenter.labels" $root | nindent 4 }}
  {{- include "karpenter.annotations" $root | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "karpenter.serviceAccountName" $root }}
    namespace: {{ $root.Release.Namespace }}
{{- end }}
