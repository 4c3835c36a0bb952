{{/* Affinity, where terms about pods that have no selector select the controller's own pods. */}}
{{- define "karpenter.affinity" -}}
{{- $affinity := .Values.affinity | toYaml | fromYaml }}
{{- $own := dict "matchLabels" (include "karpenter.selectorLabels" . | fromYaml) }}
{{- range $kind := list "podAffinity" "podAntiAffinity" }}
{{- $terms := index $affinity $kind | default dict }}
{{- range $terms.requiredDuringSchedulingIgnoredDuringExecution }}
{{- if not .labelSelector }}
{{- $_ := set . "labelSelector" $own }}
{{- end }}
{{- end }}
{{- range $terms.preferredDuringSchedulingIgnoredDuringExecution }}
{{- if not .podAffinityTerm.labelSelector }}
{{- $_ := set .podAffinityTerm "labelSelector" $own }}
{{- end }}
{{- end }}
{{- end }}
{{- toYaml $affinity }}
{{- end }}

{{- define "karpenter.spread" -}}
{{- $own := dict "matchLabels" (include "karpenter.selectorLabels" . | fromYaml) }}
{{- $constraints := list }}
{{- range .Values.topologySpreadConstraints }}
{{- $constraints = append $constraints (ternary . (merge (dict "labelSelector" $own) .) (not (empty .labelSelector))) }}
{{- end }}
{{- toYaml $constraints }}
{{- end }}
