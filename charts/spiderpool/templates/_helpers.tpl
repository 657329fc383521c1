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

{{- define "spiderpool.agent.image" -}}
{{- $image := .Values.spiderpoolAgent.image -}}
{{- with $image.registry }}{{ . }}/{{ end -}}
{{- $image.repository -}}
{{- with $image.digest }}@{{ . }}{{ else }}:{{ $image.tag | default .Chart.AppVersion }}{{ end -}}
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

{{/* What the agent reads. It follows changes of agent.networkResourcePlugin and iaasNetworkProvider while it runs; see
     spiderpool.conf.restart for the rest. */}}
{{- define "spiderpool.conf" -}}
ipamUnixSocketPath: {{ .Values.global.ipamUNIXSocketHostPath | quote }}
enableGatewayDetection: {{ .Values.ipam.enableGatewayDetection }}
enableIPConflictDetection: {{ .Values.ipam.enableIPConflictDetection }}
podResourceInject:
  enabled: {{ .Values.spiderpoolController.podResourceInject.enabled }}
iaasNetworkProvider:
  serverUrl: {{ .Values.iaasNetworkProvider.serverUrl | quote }}
  httpRequestTimeout: {{ .Values.iaasNetworkProvider.httpRequestTimeout | default "50s" | quote }}
agent:
  networkResourcePlugin:
    {{- toYaml .Values.spiderpoolAgent.networkResourcePlugin | nindent 4 }}
{{- end }}

{{/* What the agent reads once: a change of these restarts it. The mounts follow kubeletRootDir by themselves. */}}
{{- define "spiderpool.conf.restart" -}}
ipamUnixSocketPath: {{ .Values.global.ipamUNIXSocketHostPath | quote }}
{{- end }}
