"""A server of one of Python's frameworks that says what it was sent: `upload_servers.py PARSER`.

Its own process runs it, in an environment that has the frameworks; the port is its first line.
"""

# mypy: ignore-errors
import base64
import socket
import sys
from typing import Annotated, Optional
from wsgiref.simple_server import WSGIRequestHandler, make_server


def show_file(field, name, kind, content):
    return {
        "field": field,
        "name": name,
        "type": kind,
        "base64": base64.b64encode(content).decode(),
    }


def build_starlette():
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def upload(request):
        fields, files = {}, []
        async with request.form() as form:
            for name, value in form.multi_items():
                if isinstance(value, str):
                    fields.setdefault(name, []).append(value)
                else:
                    kind = value.content_type
                    files.append(show_file(name, value.filename, kind, await value.read()))
        return JSONResponse({"fields": fields, "files": files})

    return Starlette(routes=[Route("/upload/{name}", upload, methods=["POST"])])


def build_fastapi():
    from fastapi import FastAPI, File, Form, UploadFile
    from pydantic import BaseModel

    app = FastAPI()

    def show(file):
        return file and show_file("file", file.filename, file.content_type, file.file.read())

    class Strict(BaseModel):
        file: UploadFile
        title: str
        model_config = {"extra": "forbid"}

    @app.post("/one")
    def one(file: UploadFile, title: Annotated[str, Form()]):
        return {"files": [show(file)], "title": title}

    @app.post("/maybe")
    def maybe(title: Annotated[str, Form()], file: Optional[UploadFile] = None):  # noqa: UP045
        return {"files": [show(file)] if file else [], "title": title}

    @app.post("/many")
    def many(files: list[UploadFile], tags: Annotated[list[str], Form()]):
        return {"files": [show(file) for file in files], "tags": tags}

    @app.post("/maybe-many")
    def maybe_many(files: Annotated[Optional[list[UploadFile]], File()] = None):  # noqa: UP045
        return {"files": [show(file) for file in files or []]}

    @app.post("/bytes")
    def as_bytes(file: Annotated[bytes, File()], count: Annotated[int, Form()] = 3):
        return {"base64": base64.b64encode(file).decode(), "count": count}

    @app.post("/strict")
    def strict(form: Annotated[Strict, Form(media_type="multipart/form-data")]):
        return {"files": [show(form.file)], "title": form.title}

    return app


def build_flask():
    from flask import Flask, request

    app = Flask("uploads")

    @app.post("/upload/<name>")
    def upload(name):
        fields = {key: request.form.getlist(key) for key in request.form}
        files = [
            show_file(key, file.filename, file.content_type, file.read())
            for key, file in request.files.items(multi=True)
        ]
        return {"fields": fields, "files": files}

    return app


def build_django():
    from django.conf import settings
    from django.core.wsgi import get_wsgi_application
    from django.http import JsonResponse
    from django.urls import path

    def upload(request, name):
        fields = {key: request.POST.getlist(key) for key in request.POST}
        files = [
            show_file(key, file.name, file.content_type, file.read())
            for key in request.FILES
            for file in request.FILES.getlist(key)
        ]
        return JsonResponse({"fields": fields, "files": files})

    globals()["urlpatterns"] = [path("upload/<name>", upload)]
    settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="test")
    return get_wsgi_application()


class Quiet(WSGIRequestHandler):
    def log_message(self, format, *args):
        """Say nothing."""


def main(parser):
    made = {
        "starlette": build_starlette,
        "fastapi": build_fastapi,
        "flask": build_flask,
        "django": build_django,
    }[parser]()
    if parser in ("flask", "django"):
        server = make_server("127.0.0.1", 0, made, handler_class=Quiet)
        print(server.server_address[1], flush=True)
        server.serve_forever()
    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(made, log_level="critical")
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main(sys.argv[1])
