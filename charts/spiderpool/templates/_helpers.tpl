{{- define "spiderpool.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{/* Selects the agents of this release; the component label is what users filter by. */}}
{{- define "spiderpool.agent.selector" -}}
app.kubernetes.io/name: spiderpool
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: {{ .Values.spiderpoolAgent.name | quote }}
{{- end }}

{{- define "spiderpool.agent.serviceAccount" -}}
{{- .Values.spiderpoolAgent.serviceAccount.name | default .Values.spiderpoolAgent.name }}
{{- end }}

{{/* Of (list values.image chart). */}}
{{- define "spiderpool.image" -}}
{{- $image := index . 0 -}}
{{- with $image.registry }}{{ . }}/{{ end -}}
{{- $image.repository -}}
{{- with $image.digest }}@{{ . }}{{ else }}:{{ $image.tag | default (index $ 1).AppVersion }}{{ end -}}
{{- end }}

{{- define "spiderpool.controller.selector" -}}
app.kubernetes.io/name: spiderpool
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: {{ .Values.spiderpoolController.name | quote }}
{{- end }}

{{- define "spiderpool.controller.serviceAccount" -}}
{{- .Values.spiderpoolController.serviceAccount.name | default .Values.spiderpoolController.name }}
{{- end }}

{{/* Namespaces whose pods are never looked at, as JSON: ours and that of Multus have to start without us. */}}
{{- define "spiderpool.controller.excludedNamespaces" -}}
{{- concat .Values.spiderpoolController.podResourceInject.namespacesExclude (list .Release.Namespace .Values.multus.multusCNI.namespace) | uniq | toJson -}}
{{- end }}

{{/* Of (list new old), bundles in PEM: up to three authorities of the old one that the new one lacks. They stay trusted:
     controllers show the old certificate until the new Secret has reached them, a minute or two later, and upgrades may
     follow one another. */}}
{{- define "spiderpool.controller.formerAuthorities" -}}
{{- $new := index . 0 | nospace }}{{ $former := list }}
{{- range regexFindAll "(?s)-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----" (index . 1) -1 }}
  {{- if and (lt (len $former) 3) (not (contains (nospace .) $new)) }}{{ $former = append $former . }}{{ end }}
{{- end }}
{{- join "\n" $former }}
{{- end }}

{{/* DNS names of the controller's certificate, of (list . extra), as JSON. The first is the one that API servers call. */}}
{{- define "spiderpool.controller.names" -}}
{{- $root := index . 0 }}{{ $name := $root.Values.spiderpoolController.name }}
{{- $service := printf "%s.%s.svc" $name $root.Release.Namespace }}
{{- concat (list $service (printf "%s.%s" $name $root.Release.Namespace) (printf "%s.cluster.local" $service)) (index . 1) | toJson }}
{{- end }}

{{/* What says on a webhook configuration who keeps its caBundle; for both of them. */}}
{{- define "spiderpool.controller.webhookAnnotations" -}}
{{- $tls := .Values.spiderpoolController.tls }}
{{- if eq $tls.method "self" -}}
annotations:
  spiderpool.spidernet.io/ca-bundle-from: {{ printf "%s/%s" .Release.Namespace $tls.self.secretName | quote }}
{{- else if eq $tls.method "certmanager" -}}
annotations:
  cert-manager.io/inject-ca-from: {{ printf "%s/%s-server-certs" .Release.Namespace .Values.spiderpoolController.name | quote }}
{{- end }}
{{- end }}

{{/* What the controllers have published with method self, base64; also while the method changes to another. */}}
{{- define "spiderpool.controller.ownBundle" -}}
{{- lookup "v1" "Secret" .Release.Namespace .Values.spiderpoolController.tls.self.secretName | dig "data" "ca.crt" "" }}
{{- end }}

{{/* What an entry of the pod webhooks trusts now, base64. */}}
{{- define "spiderpool.controller.trustedNow" -}}
{{- $found := lookup "admissionregistration.k8s.io/v1" "MutatingWebhookConfiguration" "" .Values.spiderpoolController.name }}
{{- with first (dig "webhooks" list $found) }}{{ dig "clientConfig" "caBundle" "" . }}{{ end }}
{{- end }}

{{/* Seconds before the end of a certificate from which on it should have been renewed. */}}
{{- define "spiderpool.controller.renewalOverdue" -}}
{{- $tls := .Values.spiderpoolController.tls }}{{ $day := 86400 }}
{{- if eq $tls.method "self" -}}
{{- /* A third is left when it is renewed. */ -}}
{{- min (mul 14 $day) (div (mul $tls.self.validDays $day) 6) }}
{{- else if eq $tls.method "certmanager" -}}
{{- min (mul 14 $day) (div (mul $tls.certmanager.renewBeforeDays $day) 2) }}
{{- else -}}
{{- mul 14 $day }}
{{- end }}
{{- end }}

{{/* Where an API server finds the controller, of (dict "root" $ "path" "/…" "ca" $ca). */}}
{{- define "spiderpool.controller.clientConfig" -}}
service:
  name: {{ .root.Values.spiderpoolController.name | quote }}
  namespace: {{ .root.Release.Namespace | quote }}
  path: {{ .path }}
  port: {{ .root.Values.spiderpoolController.webhookPort }}
{{- with .ca }}
caBundle: {{ . | quote }}
{{- end }}
{{- end }}

{{/* namespace/name of the network that Multus gives to every pod; empty if it is none of ours. */}}
{{- define "spiderpool.clusterNetwork" -}}
{{- with .Values.multus.multusCNI.defaultCniCRName -}}
{{- if contains "/" . }}{{ . }}{{ else }}{{ $.Values.multus.multusCNI.namespace }}/{{ . }}{{ end -}}
{{- end -}}
{{- end }}

{{/* Folders of the kubelet. Its device-plugin folder is a constant and does not follow kubeletRootDir: both are mounted
     and the agent finds the one where a kubelet listens. */}}
{{- define "spiderpool.agent.kubeletFolders" -}}
{{- $root := include "spiderpool.agent.kubeletRoot" . -}}
{{- toJson (list (printf "%s/device-plugins" $root) "/var/lib/kubelet/device-plugins" | uniq) -}}
{{- end }}

{{- define "spiderpool.agent.kubeletRoot" -}}
{{- .Values.spiderpoolAgent.networkResourcePlugin.kubeletRootDir | default "/var/lib/kubelet" | clean | trimSuffix "/" -}}
{{- end }}

{{/* What agent and controller read. The controller follows all of it while it runs. So does the agent; see
     spiderpool.conf.restart for what it reads once. */}}
{{- define "spiderpool.conf" -}}
ipamUnixSocketPath: {{ .Values.global.ipamUNIXSocketHostPath | quote }}
enableIPv4: {{ .Values.ipam.enableIPv4 }}
enableIPv6: {{ .Values.ipam.enableIPv6 }}
enableGatewayDetection: {{ .Values.ipam.enableGatewayDetection }}
enableIPConflictDetection: {{ .Values.ipam.enableIPConflictDetection }}
enableStatefulSet: {{ .Values.ipam.enableStatefulSet }}
enableKubevirtStaticIP: {{ .Values.ipam.enableKubevirtStaticIP }}
gc:
  {{- toYaml .Values.ipam.gc | nindent 2 }}
adoption:
  {{- toYaml .Values.ipam.adoption | nindent 2 }}
podResourceInject:
  enabled: {{ .Values.spiderpoolController.podResourceInject.enabled }}
  namespacesExclude: {{ .Values.spiderpoolController.podResourceInject.namespacesExclude | toJson }}
  namespacesInclude: {{ .Values.spiderpoolController.podResourceInject.namespacesInclude | toJson }}
multus:
  namespace: {{ .Values.multus.multusCNI.namespace | quote }}
  clusterNetwork: {{ include "spiderpool.clusterNetwork" . | quote }}
  namespaceIsolation: {{ .Values.multus.multusCNI.namespaceIsolation }}
  globalNamespaces: {{ .Values.multus.multusCNI.globalNamespaces | toJson }}
plugins:
  installVlanCNI: {{ .Values.plugins.installVlanCNI }}
  present: {{ .Values.plugins.present | toJson }}
iaasNetworkProvider:
  serverUrl: {{ .Values.iaasNetworkProvider.serverUrl | quote }}
  httpRequestTimeout: {{ .Values.iaasNetworkProvider.httpRequestTimeout | default "50s" | quote }}
  {{- if .Values.iaasNetworkProvider.credentials }}
  credentials: {{ include "spiderpool.provider.folder" .Values.iaasNetworkProvider.credentials | quote }}
  {{- end }}
  insecureSkipVerify: {{ .Values.iaasNetworkProvider.insecureSkipVerify }}
  {{- with include "spiderpool.provider.former" . | fromJsonArray }}
  formerServers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
agent:
  networkResourcePlugin:
    {{- toYaml .Values.spiderpoolAgent.networkResourcePlugin | nindent 4 }}
{{- end }}

{{/* What the agent reads once: a change of these restarts it. The mounts follow kubeletRootDir by themselves. */}}
{{- define "spiderpool.conf.restart" -}}
ipamUnixSocketPath: {{ .Values.global.ipamUNIXSocketHostPath | quote }}
{{- end }}
