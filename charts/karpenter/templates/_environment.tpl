{{/* A value as a variable's text: a list joined by commas, nothing for what is not set. Zero and false are values. */}}
{{- define "karpenter.text" -}}
{{- if kindIs "slice" . -}}
{{- join "," . -}}
{{- else if kindIs "string" . -}}
{{- . -}}
{{- else if not (kindIs "invalid" .) -}}
{{- toYaml . -}}
{{- end -}}
{{- end }}

{{- define "karpenter.gates" -}}
{{- $gates := list }}
{{- range $key := keys . | sortAlpha }}
{{- $value := index $ $key }}
{{- if kindIs "bool" $value }}
{{- $name := printf "%s%s" (substr 0 1 $key | upper) (substr 1 -1 $key) }}
{{- if not (has $key (list "driftEnabled" "drift")) }}
{{- $gates = append $gates (printf "%s=%t" $name $value) }}
{{- end }}
{{- end }}
{{- end }}
{{- join "," $gates }}
{{- end }}

{{/* The container's variables. Those of controller.env win: two of one name could not be applied. */}}
{{- define "karpenter.environment" -}}
{{- $root := .root }}
{{- $read := .read }}
{{- $s := $read.settings }}
{{- $rows := list
  (list "CLOUD_PROVIDER" $s.cloudProvider)
  (list "KARPENTER_SERVICE" (include "karpenter.fullname" $root))
  (list "WEBHOOK_PORT" (ternary $root.Values.conversion.port 0 $root.Values.conversion.enabled))
  (list "WEBHOOK_CLIENT_CA" $root.Values.conversion.clientCA)
  (list "METRICS_PORT" $root.Values.controller.metrics.port)
  (list "HEALTH_PROBE_PORT" $root.Values.controller.healthProbe.port)
  (list "LOG_LEVEL" $read.logLevel)
  (list "LOG_ENCODING" $read.logEncoding)
  (list "LOG_OUTPUT_PATHS" $read.logOutputPaths)
  (list "LOG_ERROR_OUTPUT_PATHS" $read.logErrorOutputPaths)
  (list "DISABLE_LEADER_ELECTION" $s.disableLeaderElection)
  (list "LEADER_ELECTION_NAME" $s.leaderElectionName)
  (list "LEADER_ELECTION_NAMESPACE" (include "karpenter.leaseNamespace" $root))
  (list "POOL_SELECTOR" $s.poolSelector)
  (list "DISABLE_CONTROLLER_WARMUP" $s.disableControllerWarmup)
  (list "DISABLE_CLUSTER_STATE_OBSERVABILITY" $s.disableClusterStateObservability)
  (list "METRICS_DETAIL" $s.metricsDetail)
  (list "PRICE_FILE" (ternary "/etc/karpenter/prices/prices.yaml" $s.priceFile (not (empty $s.priceConfigMap))))
  (list "COST_LABEL" $s.costLabel)
  (list "ENABLE_PROFILING" $s.enableProfiling)
  (list "KUBE_CLIENT_QPS" $s.kubeClientQPS)
  (list "KUBE_CLIENT_BURST" $s.kubeClientBurst)
  (list "FEATURE_GATES" (include "karpenter.gates" $s.featureGates))
  (list "BATCH_MAX_DURATION" $s.batchMaxDuration)
  (list "BATCH_IDLE_DURATION" $s.batchIdleDuration)
  (list "PREFERENCE_POLICY" $s.preferencePolicy)
  (list "MIN_VALUES_POLICY" $s.minValuesPolicy)
  (list "IGNORE_DRA_REQUESTS" $s.ignoreDRARequests)
  (list "DISRUPTION_VALIDATION" $s.disruptionValidation)
  (list "NODE_OVERHEAD_PRICE" $s.nodeOverheadPrice)
  (list "WORK_BUDGET" $s.workBudget)
  (list "POD_PLACEMENT" $s.podPlacement)
  (list "HONOR_SAFE_TO_EVICT" $s.honorSafeToEvict)
  (list "PROACTIVE_SCALE_UP" $s.proactiveScaleUp)
  (list "EXPENDABLE_PODS_PRIORITY_CUTOFF" $s.expendablePodsPriorityCutoff)
  (list "NEW_POD_DELAY" $s.newPodDelay)
  (list "UNREADY_BRAKE" $s.unreadyBrake)
  (list "SCHEDULER_CONFIG" $s.schedulerConfig)
}}
{{- if eq (toString $s.cloudProvider) "aws" }}
{{- $rows = concat $rows (list
  (list "CLUSTER_NAME" $s.clusterName)
  (list "CLUSTER_ENDPOINT" $s.clusterEndpoint)
  (list "CLUSTER_CA_BUNDLE" $s.clusterCABundle)
  (list "ISOLATED_VPC" $s.isolatedVPC)
  (list "EKS_CONTROL_PLANE" $s.eksControlPlane)
  (list "VM_MEMORY_OVERHEAD_PERCENT" $s.vmMemoryOverheadPercent)
  (list "INTERRUPTION_QUEUE" $s.interruptionQueue)
  (list "INTERRUPTION_BACKOFF" $s.interruptionBackoff)
  (list "RESERVED_ENIS" $s.reservedENIs)
  (list "DEFAULT_INSTANCE_PROFILE" $s.defaultInstanceProfile)
  (list "DISABLE_DRY_RUN" $s.disableDryRun)
  (list "ENABLE_ZONAL_SHIFT" $s.enableZonalShift)
  (list "COMMITMENTS_FROM_AWS" $s.commitmentsFromAWS)
  (list "AMI_REFRESH_INTERVAL" $s.amiRefreshInterval)
  (list "SUBNET_REFRESH_INTERVAL" $s.subnetRefreshInterval)
  (list "AWS_FEATURE_GATES" (include "karpenter.gates" ($s.awsFeatureGates | default dict)))
) }}
{{- else }}
{{- $rows = append $rows (list "INSTANCE_TYPES_FILE_PATH" $s.instanceTypesFilePath) }}
{{- end }}
{{- $own := list }}
{{- range $root.Values.controller.env }}
{{- $own = append $own .name }}
{{- end }}
{{- $env := list }}
{{- range $row := $rows }}
{{- $text := include "karpenter.text" (index $row 1) }}
{{- if and (ne $text "") (not (has (index $row 0) $own)) }}
{{- $env = append $env (dict "name" (index $row 0) "value" $text) }}
{{- end }}
{{- end }}
{{- if not (has "MEMORY_LIMIT" $own) }}
{{- $env = append $env (dict "name" "MEMORY_LIMIT" "valueFrom" (dict "resourceFieldRef" (dict "containerName" $root.Values.controller.containerName "divisor" "0" "resource" "limits.memory"))) }}
{{- end }}
{{- if not (has "CPU_REQUESTS" $own) }}
{{- $env = append $env (dict "name" "CPU_REQUESTS" "valueFrom" (dict "resourceFieldRef" (dict "containerName" $root.Values.controller.containerName "divisor" "1m" "resource" "requests.cpu"))) }}
{{- end }}
{{- toYaml (concat $env ($root.Values.controller.env | default list)) }}
{{- end }}
