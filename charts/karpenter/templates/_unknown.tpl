{{/*
Values that no chart of Karpenter has. One that resembles a known name, or has the name of a value elsewhere, ends the
installation: it is most likely meant to have an effect, and notes after an installation are not seen by Argo CD or Flux.
The others get a notice: values of a later version of upstream's chart must not prevent an installation.
*/}}
{{- define "karpenter.readUnknown" -}}
{{- $state := .state }}
{{- $in := .in }}
{{- $known := include "karpenter.known" . | fromYaml }}
{{- range $path := keys $known | sortAlpha }}
{{- $found := dict "value" $in }}
{{- if ne $path "values" }}
{{- $found = dict }}
{{- include "karpenter.find" (dict "in" $in "path" $path "found" $found) }}
{{- end }}
{{- if kindIs "map" $found.value }}
{{- range $key := keys $found.value | sortAlpha }}
{{- if not (has $key (index $known $path)) }}
{{- $name := printf "%s.%s" $path $key | trimPrefix "values." }}
{{- $near := include "karpenter.nearest" (dict "key" $key "path" $path "known" $known) }}
{{- if $near }}
{{- $_ := set $state "stops" (append $state.stops (printf "%s is not known: did you mean %s?" $name $near)) }}
{{- else }}
{{- $_ := set $state "notices" (append $state.notices (printf "%s is not known and has no effect" $name)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/*
The known name that .key most likely stands for: below .path one that differs in case, or in one or two characters beside
each other; else the same name in another place, if there is only one such place. Names of the small sections, such as
namespace, are too common for that.
*/}}
{{- define "karpenter.nearest" -}}
{{- $key := .key }}
{{- $near := list }}
{{- range $name := index .known .path }}
{{- $most := ternary 3 2 (gt (len $name) 5) }}
{{- range $i := until (len $name) }}
{{- $rest := "" }}
{{- if lt (add $i 2 | int) (len $name) }}
{{- $rest = substr (add $i 2 | int) (len $name) $name }}
{{- end }}
{{- if regexMatch (printf "(?i)^%s.{0,%d}%s$" (substr 0 $i $name) $most $rest) $key }}
{{- $near = append $near (printf "%s.%s" $.path $name | trimPrefix "values.") }}
{{- end }}
{{- end }}
{{- end }}
{{- if not $near }}
{{- range $path := list "values" "controller" "settings" "settings.featureGates" "settings.awsFeatureGates" }}
{{- if has $key (index $.known $path) }}
{{- $near = append $near (printf "%s.%s" $path $key | trimPrefix "values.") }}
{{- end }}
{{- end }}
{{- if gt (len $near) 1 }}
{{- $near = list }}
{{- end }}
{{- end }}
{{- with $near }}
{{- first . }}
{{- end }}
{{- end }}

{{/* The names below each value whose names are not free; below "values" those at the top. Older names are among them. */}}
{{- define "karpenter.known" -}}
values: [global, nameOverride, fullnameOverride, additionalLabels, additionalAnnotations, imagePullPolicy, imagePullSecrets, service,
  serviceAccount, additionalClusterRoleRules, serviceMonitor, prometheusRule, dashboards, networkPolicy, crdGuard, conversion, replicas,
  revisionHistoryLimit, strategy, podLabels, podAnnotations, podDisruptionBudget, flowSchemas, podSecurityContext, priorityClassName,
  terminationGracePeriodSeconds, hostNetwork, schedulerName, dnsPolicy, dnsConfig, initContainers, extraVolumes, nodeSelector,
  affinity, topologySpreadConstraints, tolerations, controller, logLevel, logEncoding, logOutputPaths, logErrorOutputPaths, settings,
  clusterName, clusterEndpoint, aws, webhook, logConfig]
service: [annotations]
serviceAccount: [create, name, annotations]
serviceMonitor: [enabled, additionalLabels, relabelings, metricRelabelings, endpointConfig, sampleLimit]
prometheusRule: [enabled, runbookBaseURL, additionalLabels]
dashboards: [enabled, namespace, labels, annotations]
networkPolicy: [enabled, metricsFrom, webhookFrom, additionalEgressPorts]
crdGuard: [enabled]
conversion: [enabled, port, clientCA]
podDisruptionBudget: [name, maxUnavailable]
flowSchemas: [enabled]
controller: [containerName, image, env, envFrom, resources, extraVolumeMounts, sidecarContainer, sidecarVolumeMounts, securityContext,
  metrics, healthProbe, clusterName, clusterEndpoint, batchMaxDuration, batchIdleDuration, logLevel, logEncoding, outputPaths,
  errorOutputPaths, replicas]
controller.image: [repository, tag, digest]
controller.metrics: [port]
controller.healthProbe: [port]
settings: [cloudProvider, batchMaxDuration, batchIdleDuration, preferencePolicy, minValuesPolicy, ignoreDRARequests,
  disableClusterStateObservability, featureGates, disruptionValidation, nodeOverheadPrice, workBudget, podPlacement,
  honorSafeToEvict, proactiveScaleUp, expendablePodsPriorityCutoff, newPodDelay, unreadyBrake, schedulerConfig, kubeClientQPS, kubeClientBurst, enableProfiling, metricsDetail, priceFile, priceConfigMap, costLabel, disableControllerWarmup,
  disableLeaderElection, leaderElectionName, leaderElectionNamespace, poolSelector, clusterName, clusterEndpoint, clusterCABundle, isolatedVPC,
  eksControlPlane, vmMemoryOverheadPercent, interruptionQueue, interruptionQueueName, interruptionBackoff,
  reservedENIs, defaultInstanceProfile,
  disableDryRun, enableZonalShift, commitmentsFromAWS, amiRefreshInterval, subnetRefreshInterval, awsFeatureGates, instanceTypesFilePath, aws,
  assumeRoleARN, assumeRoleDuration, tags]
settings.featureGates: [nodeRepair, nodeOverlay, reservedCapacity, spotToSpotConsolidation, staticCapacity, capacityBuffer, drift,
  driftEnabled]
settings.awsFeatureGates: [nodeClassCEL]
settings.aws: [clusterName, clusterEndpoint, clusterCABundle, isolatedVPC, vmMemoryOverheadPercent, interruptionQueueName, reservedENIs,
  defaultInstanceProfile, enablePodENI, nodeNameConvention, assumeRoleARN, assumeRoleDuration, tags, enableENILimitedPodDensity,
  enableInterruptionHandling]
{{- end }}
