{{- define "spiderpool.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{/* Selects the agents of this release; the component label is what users filter by. */}}
{{- define "spiderpool.agent.selector" -}}
app.kubernetes.io/name: spiderpool
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: {{ .Values.spiderpoolAgent.name }}
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
{{- $root := clean .Values.spiderpoolAgent.networkResourcePlugin.kubeletRootDir -}}
{{- toJson (list (printf "%s/device-plugins" $root) "/var/lib/kubelet/device-plugins" | uniq) -}}
{{- end }}

{{/* What the agent reads. */}}
{{- define "spiderpool.conf" -}}
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
