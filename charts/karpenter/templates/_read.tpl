{{/*
What the values mean, whatever chart they were written for: YAML with

  settings, logLevel, logEncoding, logOutputPaths, logErrorOutputPaths, replicas   effective values
  image     the image's reference
  notices   what was called otherwise, or has no meaning any more
  stops     what cannot be translated; the installation ends with these lines

Templates read settings from here, not from .Values.
*/}}
{{- define "karpenter.read" -}}
{{- $in := .Values | toYaml | fromYaml }}
{{- $state := dict "settings" $in.settings "notices" list "stops" list }}
{{- range $key := list "logLevel" "logEncoding" "logOutputPaths" "logErrorOutputPaths" "replicas" }}
{{- $_ := set $state $key (index $in $key) }}
{{- end }}

{{- /* Renamed: the old name, the new one, and the new one's default, which gives way to the old name's value. */}}
{{- range $row := list
  (list "settings.aws.clusterName" "settings.clusterName" "")
  (list "clusterName" "settings.clusterName" "")
  (list "controller.clusterName" "settings.clusterName" "")
  (list "settings.aws.clusterEndpoint" "settings.clusterEndpoint" "")
  (list "clusterEndpoint" "settings.clusterEndpoint" "")
  (list "controller.clusterEndpoint" "settings.clusterEndpoint" "")
  (list "settings.aws.clusterCABundle" "settings.clusterCABundle" "")
  (list "settings.aws.isolatedVPC" "settings.isolatedVPC" false)
  (list "settings.aws.vmMemoryOverheadPercent" "settings.vmMemoryOverheadPercent" 0.075)
  (list "settings.aws.interruptionQueueName" "settings.interruptionQueue" "")
  (list "settings.interruptionQueueName" "settings.interruptionQueue" "")
  (list "settings.aws.reservedENIs" "settings.reservedENIs" "0")
  (list "settings.aws.defaultInstanceProfile" "settings.defaultInstanceProfile" "")
  (list "aws.defaultInstanceProfile" "settings.defaultInstanceProfile" "")
  (list "controller.batchMaxDuration" "settings.batchMaxDuration" "10s")
  (list "controller.batchIdleDuration" "settings.batchIdleDuration" "1s")
  (list "controller.logLevel" "logLevel" "info")
  (list "logConfig.logLevel.controller" "logLevel" "info")
  (list "logConfig.logLevel.global" "logLevel" "info")
  (list "controller.logEncoding" "logEncoding" "json")
  (list "logConfig.logEncoding" "logEncoding" "json")
  (list "controller.outputPaths" "logOutputPaths" (list "stdout"))
  (list "logConfig.outputPaths" "logOutputPaths" (list "stdout"))
  (list "controller.errorOutputPaths" "logErrorOutputPaths" (list "stderr"))
  (list "logConfig.errorOutputPaths" "logErrorOutputPaths" (list "stderr"))
  (list "controller.replicas" "replicas" 2.0)
}}
{{- include "karpenter.renamed" (dict "in" $in "state" $state "from" (index $row 0) "to" (index $row 1) "default" (index $row 2)) }}
{{- end }}

{{- /* Nothing to be set any more. */}}
{{- range $row := list
  (list "settings.aws.enablePodENI" "network interfaces of pods are always supported")
  (list "settings.aws.nodeNameConvention" "the image determines the name of the node")
  (list "settings.aws.assumeRoleDuration" "no role is assumed")
  (list "settings.assumeRoleDuration" "no role is assumed")
  (list "settings.featureGates.driftEnabled" "drift is always on; a budget of nodes \"0\" with reasons [Drifted] keeps a NodePool's nodes")
  (list "settings.featureGates.drift" "drift is always on; a budget of nodes \"0\" with reasons [Drifted] keeps a NodePool's nodes")
  (list "webhook" "the only webhook converts older versions of the API (conversion.enabled)")
}}
{{- $found := dict }}
{{- include "karpenter.find" (dict "in" $in "path" (index $row 0) "found" $found) }}
{{- if and (hasKey $found "value") (not (kindIs "invalid" $found.value)) }}
{{- $_ := set $state "notices" (append $state.notices (printf "%s has no effect: %s" (index $row 0) (index $row 1))) }}
{{- end }}
{{- end }}

{{- /* Not to be translated: somewhere else now. */}}
{{- range $row := list
  (list "settings.aws.assumeRoleARN" "" "set the role in serviceAccount.annotations.eks\\.amazonaws\\.com/role-arn, or use EKS Pod Identity")
  (list "settings.assumeRoleARN" "" "set the role in serviceAccount.annotations.eks\\.amazonaws\\.com/role-arn, or use EKS Pod Identity")
  (list "settings.aws.tags" dict "set spec.tags of every EC2NodeClass")
  (list "settings.tags" dict "set spec.tags of every EC2NodeClass")
  (list "settings.aws.enableENILimitedPodDensity" true "set spec.kubelet.maxPods: 110 in every EC2NodeClass")
}}
{{- $found := dict }}
{{- include "karpenter.find" (dict "in" $in "path" (index $row 0) "found" $found) }}
{{- if hasKey $found "value" }}
{{- if not (or (kindIs "invalid" $found.value) (deepEqual $found.value (index $row 1))) }}
{{- $_ := set $state "stops" (append $state.stops (printf "%s cannot be translated: %s, and remove it" (index $row 0) (index $row 2))) }}
{{- end }}
{{- end }}
{{- end }}
{{- include "karpenter.readRest" (dict "root" . "in" $in "state" $state) }}
{{- toYaml $state }}
{{- end }}

{{/* Looks for a dotted path in .in; .found gets the value, if the path is there. */}}
{{- define "karpenter.find" -}}
{{- $at := .in }}
{{- $there := true }}
{{- range $key := splitList "." .path }}
{{- if and $there (kindIs "map" $at) }}
{{- if hasKey $at $key }}
{{- $at = index $at $key }}
{{- else }}
{{- $there = false }}
{{- end }}
{{- else }}
{{- $there = false }}
{{- end }}
{{- end }}
{{- if $there }}
{{- $_ := set .found "value" $at }}
{{- end }}
{{- end }}

{{/* Takes the value of an old name, unless the new one was given a value of its own. */}}
{{- define "karpenter.renamed" -}}
{{- $found := dict }}
{{- include "karpenter.find" (dict "in" .in "path" .from "found" $found) }}
{{- if hasKey $found "value" }}
{{- if not (or (kindIs "invalid" $found.value) (deepEqual $found.value "")) }}
{{- $state := .state }}
{{- $notice := printf "%s is renamed to %s" .from .to }}
{{- $into := $state }}
{{- $key := .to }}
{{- if hasPrefix "settings." .to }}
{{- $into = $state.settings }}
{{- $key = trimPrefix "settings." .to }}
{{- end }}
{{- $now := index $into $key }}
{{- if or (kindIs "invalid" $now) (deepEqual $now .default) }}
{{- $_ := set $into $key $found.value }}
{{- else if not (deepEqual $now $found.value) }}
{{- $notice = printf "%s, which has another value; %s is ignored" $notice .from }}
{{- end }}
{{- $_ := set $state "notices" (append $state.notices $notice) }}
{{- end }}
{{- end }}
{{- end }}

{{/* What needs more than a table: the image, the cluster's name, what this version cannot do, and unknown values. */}}
{{- define "karpenter.readRest" -}}
{{- $state := .state }}
{{- include "karpenter.readTemplates" . }}
{{- include "karpenter.readImage" . }}
{{- include "karpenter.readCluster" . }}
{{- if deepEqual $state.settings.ignoreDRARequests false }}
{{- $_ := set $state "stops" (append $state.stops "settings.ignoreDRARequests: device allocation is not supported yet, set it to true") }}
{{- end }}
{{- if and $state.settings.priceFile $state.settings.priceConfigMap }}
{{- $_ := set $state "stops" (append $state.stops "settings.priceFile and settings.priceConfigMap: want one of them, the controller reads one file") }}
{{- end }}
{{- include "karpenter.readUnknown" . }}
{{- end }}

{{/*
Settings that are templates, as in upstream's chart: a chart that depends on this one passes values of its own by them. What
they become is checked here, because the schema sees the template.
*/}}
{{- define "karpenter.readTemplates" -}}
{{- $state := .state }}
{{- $root := .root }}
{{- $duration := "a duration such as 10s" }}
{{- range $row := list
  (list "batchMaxDuration" $duration)
  (list "batchIdleDuration" $duration)
  (list "clusterCABundle" "")
  (list "clusterName" "")
  (list "clusterEndpoint" "")
  (list "isolatedVPC" "true or false")
  (list "eksControlPlane" "true or false")
  (list "vmMemoryOverheadPercent" "a number")
  (list "interruptionQueue" "")
  (list "enableZonalShift" "true or false")
  (list "commitmentsFromAWS" "true or false")
  (list "reservedENIs" "a number")
  (list "ignoreDRARequests" "true or false")
  (list "disableClusterStateObservability" "true or false")
  (list "disableDryRun" "true or false")
  (list "amiRefreshInterval" $duration)
  (list "subnetRefreshInterval" $duration)
}}
{{- $key := index $row 0 }}
{{- $want := index $row 1 }}
{{- $given := index $state.settings $key }}
{{- if and (kindIs "string" $given) (contains "{{" (toString $given)) }}
{{- $text := tpl $given $root | trim }}
{{- $forms := dict $duration "^([0-9]+(\\.[0-9]+)?(ns|us|ms|s|m|h))+$" "true or false" "^(true|false)$" "a number" "^[0-9]+(\\.[0-9]+)?$" "" "" }}
{{- if and $text (not (regexMatch (get $forms $want) $text)) }}
{{- $_ := set $state "stops" (append $state.stops (printf "settings.%s is the template %s, which becomes %q, want %s" $key $given $text $want)) }}
{{- end }}
{{- $_ := set $state.settings $key $text }}
{{- if eq $want "true or false" }}
{{- $_ := set $state.settings $key (ternary (eq $text "true") nil (has $text (list "true" "false"))) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/*
The image. That of upstream's chart, which is in every file that helm show values wrote, is replaced by this chart's own.
A copy of it on a mirror is not: only the operator knows where the mirror has this chart's image.
*/}}
{{- define "karpenter.readImage" -}}
{{- $state := .state }}
{{- $version := .root.Chart.AppVersion }}
{{- $image := .in.controller.image }}
{{- $_ := set $state "image" "" }}
{{- if not (kindIs "map" $image) }}
{{- $_ := set $state "stops" (append $state.stops "controller.image is the image of another program's release: remove it, or set controller.image.repository and controller.image.tag") }}
{{- else }}
{{- $repository := toString $image.repository }}
{{- $tag := $image.tag | default $version }}
{{- $digest := $image.digest }}
{{- if regexMatch "^public\\.ecr\\.aws/karpenter/" $repository }}
{{- $repository = "karpenter-go/karpenter" }}
{{- $tag = $version }}
{{- $digest = "" }}
{{- $_ := set $state "notices" (append $state.notices "controller.image names upstream's image; this chart's own is used instead") }}
{{- else if regexMatch "(^|/)karpenter/controller([:@].*)?$" $repository }}
{{- $_ := set $state "stops" (append $state.stops (printf "controller.image.repository %s is a copy of upstream's program, which this chart cannot run: set it to your copy of karpenter-go/karpenter, and set controller.image.tag to %s and controller.image.digest to \"\" or to its digest" $repository $version)) }}
{{- end }}
{{- $_ := set $state "image" (printf "%s:%s%s" $repository (toString $tag) (ternary "" (printf "@%s" $digest) (empty $digest))) }}
{{- end }}
{{- end }}

{{/* The provider, and the name of the cluster, unless it comes by the environment. */}}
{{- define "karpenter.readCluster" -}}
{{- $state := .state }}
{{- $given := not (empty .in.controller.envFrom) }}
{{- range .in.controller.env }}
{{- if has .name (list "CLUSTER_NAME" "CLOUD_PROVIDER") }}
{{- $given = true }}
{{- end }}
{{- end }}
{{- $settings := $state.settings }}
{{- if and (eq (toString $settings.cloudProvider) "aws") (empty $settings.clusterName) (not $given) }}
{{- $_ := set $state "stops" (append $state.stops "settings.clusterName is required: the name of the EKS cluster (or settings.cloudProvider=kwok for simulated nodes)") }}
{{- end }}
{{- $old := dict }}
{{- include "karpenter.find" (dict "in" .in "path" "settings.aws.enableInterruptionHandling" "found" $old) }}
{{- if $old.value }}
{{- if empty $settings.interruptionQueue }}
{{- $_ := set $state "stops" (append $state.stops "settings.aws.enableInterruptionHandling cannot be translated: name the queue in settings.interruptionQueue, and remove it") }}
{{- else }}
{{- $_ := set $state "notices" (append $state.notices "settings.aws.enableInterruptionHandling has no effect: settings.interruptionQueue says so") }}
{{- end }}
{{- end }}
{{- end }}

{{/* Ends the installation when something cannot be translated: all of it at once. */}}
{{- define "karpenter.check" -}}
{{- with .stops }}
{{- fail (printf "\n\nthe values need a change:\n  - %s\n" (join "\n  - " .)) }}
{{- end }}
{{- end }}
