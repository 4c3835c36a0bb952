{{- define "karpenter.container" -}}
{{- $root := .root }}
{{- $c := $root.Values.controller }}
- name: {{ $c.containerName }}
  image: {{ .read.image | quote }}
  imagePullPolicy: {{ $root.Values.imagePullPolicy }}
  args: [controller]
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    readOnlyRootFilesystem: true
    allowPrivilegeEscalation: false
    capabilities:
      drop: [ALL]
    {{- with $c.securityContext }}
    {{- range $field := list "appArmorProfile" "seLinuxOptions" "seccompProfile" }}
    {{- with index $c.securityContext $field }}
    {{ $field }}:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- end }}
    {{- end }}
  env:
    {{- include "karpenter.environment" . | nindent 4 }}
  {{- with $c.envFrom }}
  envFrom:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  ports:
    - name: http-metrics
      containerPort: {{ $c.metrics.port }}
      protocol: TCP
    - name: http
      containerPort: {{ $c.healthProbe.port }}
      protocol: TCP
    {{- if $root.Values.conversion.enabled }}
    - name: https-webhook
      containerPort: {{ $root.Values.conversion.port }}
      protocol: TCP
    {{- end }}
  livenessProbe:
    initialDelaySeconds: 30
    timeoutSeconds: 30
    httpGet:
      path: /healthz
      port: http
  readinessProbe:
    initialDelaySeconds: 5
    timeoutSeconds: 30
    httpGet:
      path: /readyz
      port: http
  {{- with $c.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- $temporary := include "karpenter.temporary" $c }}
  {{- if or $temporary .read.settings.priceConfigMap $c.extraVolumeMounts }}
  volumeMounts:
    {{- if $temporary }}
    - name: karpenter-captures
      mountPath: {{ $temporary }}
    {{- end }}
    {{- if .read.settings.priceConfigMap }}
    - name: karpenter-prices
      mountPath: /etc/karpenter/prices
      readOnly: true
    {{- end }}
    {{- with $c.extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
{{- end }}

{{/* Where the volume for captures is mounted, "" if controller.extraVolumeMounts has another volume there. */}}
{{- define "karpenter.temporary" -}}
{{- $path := "/tmp" }}
{{- range .extraVolumeMounts }}
{{- if eq (trimSuffix "/" .mountPath) "/tmp" }}
{{- $path = "" }}
{{- end }}
{{- end }}
{{- $path }}
{{- end }}

{{/* The mounts of a sidecar: its own, and of the controller's and all sidecars' those at other paths. */}}
{{- define "karpenter.sidecarMounts" -}}
{{- $mounts := list }}
{{- $paths := list }}
{{- range concat (.own | default list) (.controller.extraVolumeMounts | default list) (.controller.sidecarVolumeMounts | default list) }}
{{- if not (has .mountPath $paths) }}
{{- $mounts = append $mounts . }}
{{- $paths = append $paths .mountPath }}
{{- end }}
{{- end }}
{{- toYaml $mounts }}
{{- end }}
